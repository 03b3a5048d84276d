// Kernels that compute each output element from its index. Internal to x.cu.
//
// A thread computes four floats or eight 16-bit elements. It issues all loads before the first
// store, which keeps enough bytes in flight to saturate memory bandwidth.
#pragma once

#include <algorithm>

#include "cuda/op/primitive/element.h"
#include "cuda/op/primitive/launch.cuh"

namespace cistern::op {

inline constexpr unsigned kPerThread = 4;  // floats
template <typename T>
inline constexpr unsigned kElements = kPerThread * sizeof(float) / sizeof(T);

template <typename Value, typename T>
__global__ void __launch_bounds__(kBlockThreads)
    MapKernel(size_t count, Value value, bool accumulate, T* y) {
  const size_t first = size_t{blockIdx.x} * (kBlockThreads * kElements<T>)+threadIdx.x;
  float made[kElements<T>];
#pragma unroll
  for (unsigned k = 0; k < kElements<T>; ++k) {
    const size_t i = first + k * kBlockThreads;
    if (i < count) made[k] = accumulate ? y[i] + value(i) : value(i);
  }
#pragma unroll
  for (unsigned k = 0; k < kElements<T>; ++k) {
    const size_t i = first + k * kBlockThreads;
    if (i < count) y[i] = made[k];
  }
}

// y[i] = value(i), or y[i] += value(i), for i < count. `value` may read y[i].
template <typename Value, typename T>
void Map(const char* op, size_t count, Write write, T* y, Stream& stream, const Value& value) {
  const auto blocks = static_cast<unsigned>(CeilDivide(count, kBlockThreads * kElements<T>));
  Launch(op, MapKernel<Value, T>, dim3(blocks), dim3(kBlockThreads), 0, stream, count, value,
         write == Write::kAccumulate, y);
}

// A thread block for a matrix of n columns: block.x threads over columns and the rest over rows, so
// that narrow matrices fill a warp too and no index needs a division.
inline dim3 RowBlock(size_t n, unsigned widest = kBlockThreads) {
  const unsigned x = PowerOfTwo(n, widest);
  return dim3(x, kBlockThreads / x);
}
inline constexpr size_t kMaxGridY = 65535;

template <typename Value, typename T>
__global__ void __launch_bounds__(kBlockThreads)
    MapRowsKernel(size_t b, size_t n, Value value, bool accumulate, T* y, size_t y_stride) {
  const size_t first = size_t{blockIdx.x} * kPerThread * blockDim.y + threadIdx.y;
  const size_t step = size_t{gridDim.y} * blockDim.x;
  for (size_t c = size_t{blockIdx.y} * blockDim.x + threadIdx.x; c < n; c += step) {
    float made[kPerThread];
#pragma unroll
    for (unsigned k = 0; k < kPerThread; ++k) {
      const size_t r = first + k * blockDim.y;
      if (r >= b) continue;
      const T* at = y + r * y_stride + c;
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
template <typename Value, typename T>
void MapRows(const char* op, size_t b, size_t n, Write write, T* y, size_t y_stride, Stream& stream,
             const Value& value) {
  const dim3 block = RowBlock(n);
  const dim3 grid(static_cast<unsigned>(CeilDivide(b, kPerThread * block.y)),
                  static_cast<unsigned>(std::min(CeilDivide(n, block.x), kMaxGridY)));
  Launch(op, MapRowsKernel<Value, T>, grid, block, 0, stream, b, n, value,
         write == Write::kAccumulate, y, y_stride);
}

}  // namespace cistern::op
