// Kernels that make each element of an output from its place alone. Internal to x.cu.
//
// A thread makes four elements: all loads are issued before the first store, which is what keeps
// enough bytes in flight to fill the memory's bandwidth with one load instruction a warp of 128 B.
#pragma once

#include <algorithm>

#include "cuda/op/launch.cuh"

namespace cistern::op {

inline constexpr unsigned kPerThread = 4;

template <typename Value>
__global__ void __launch_bounds__(kBlockThreads)
    MapKernel(size_t count, Value value, bool accumulate, float* y) {
  const size_t first = size_t{blockIdx.x} * (kBlockThreads * kPerThread) + threadIdx.x;
  float made[kPerThread];
#pragma unroll
  for (unsigned k = 0; k < kPerThread; ++k) {
    const size_t i = first + k * kBlockThreads;
    if (i < count) made[k] = accumulate ? y[i] + value(i) : value(i);
  }
#pragma unroll
  for (unsigned k = 0; k < kPerThread; ++k) {
    const size_t i = first + k * kBlockThreads;
    if (i < count) y[i] = made[k];
  }
}

// y[i] = value(i), or y[i] += value(i), for i < count. `value` may read y[i].
template <typename Value>
void Map(const char* op, size_t count, Write write, float* y, Stream& stream, const Value& value) {
  const auto blocks = static_cast<unsigned>(CeilDivide(count, kBlockThreads * kPerThread));
  Launch(op, MapKernel<Value>, dim3(blocks), dim3(kBlockThreads), 0, stream, count, value,
         write == Write::kAccumulate, y);
}

// Threads over a matrix of n columns: block.x of them over columns, the others over rows, so that
// narrow matrices fill a warp too and no index is divided.
inline dim3 RowBlock(size_t n, unsigned widest = kBlockThreads) {
  const unsigned x = PowerOfTwo(n, widest);
  return dim3(x, kBlockThreads / x);
}
inline constexpr size_t kMaxGridY = 65535;

template <typename Value>
__global__ void __launch_bounds__(kBlockThreads)
    MapRowsKernel(size_t b, size_t n, Value value, bool accumulate, float* y, size_t y_stride) {
  const size_t first = size_t{blockIdx.x} * kPerThread * blockDim.y + threadIdx.y;
  const size_t step = size_t{gridDim.y} * blockDim.x;
  for (size_t c = size_t{blockIdx.y} * blockDim.x + threadIdx.x; c < n; c += step) {
    float made[kPerThread];
#pragma unroll
    for (unsigned k = 0; k < kPerThread; ++k) {
      const size_t r = first + k * blockDim.y;
      if (r >= b) continue;
      const float* at = y + r * y_stride + c;
      made[k] = accumulate ? *at + value(r, c) : value(r, c);
    }
#pragma unroll
    for (unsigned k = 0; k < kPerThread; ++k) {
      const size_t r = first + k * blockDim.y;
      if (r < b) y[r * y_stride + c] = made[k];
    }
  }
}

// y(r, c) = value(r, c), or +=, for r < b and c < n. Row r of y begins at y + r * y_stride.
template <typename Value>
void MapRows(const char* op, size_t b, size_t n, Write write, float* y, size_t y_stride,
             Stream& stream, const Value& value) {
  const dim3 block = RowBlock(n);
  const dim3 grid(static_cast<unsigned>(CeilDivide(b, kPerThread * block.y)),
                  static_cast<unsigned>(std::min(CeilDivide(n, block.x), kMaxGridY)));
  Launch(op, MapRowsKernel<Value>, grid, block, 0, stream, b, n, value, write == Write::kAccumulate,
         y, y_stride);
}

}  // namespace cistern::op
