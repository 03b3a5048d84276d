// Memory traffic for N = b slots dim elements of s bytes: FmOrder2 s N + s b dim; backward 2 s N +
// s b dim (3 s N where it accumulates), because its second read of x hits the cache. 3 FLOPs per
// element of x each.
#include "cuda/op/dense/fm_order2.h"

#include "cuda/op/primitive/map_packs.cuh"

namespace cistern::op::gpu {
namespace {

// A thread computes y(i, e) for a pack of kCount neighbouring e.
template <unsigned kCount, typename T>
__global__ void __launch_bounds__(kBlockThreads)
    FmForwardKernel(const T* x, size_t stride, T* y, size_t b, size_t slots, size_t dim) {
  const size_t i = size_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (i >= b) return;
  const size_t step = size_t{gridDim.y} * blockDim.x * kCount;
  for (size_t e = (size_t{blockIdx.y} * blockDim.x + threadIdx.x) * kCount; e < dim; e += step) {
    const T* in = x + i * stride + e;
    float sum[kCount] = {}, squares[kCount] = {};
#pragma unroll 8
    for (size_t s = 0; s < slots; ++s) {
      const auto values = Pack<T, kCount>::Load(in + s * dim);
#pragma unroll
      for (unsigned k = 0; k < kCount; ++k) {
        const float value = values[k];
        sum[k] += value;
        squares[k] += value * value;
      }
    }
    Pack<T, kCount> out;
#pragma unroll
    for (unsigned k = 0; k < kCount; ++k) out.Set(k, 0.5f * (sum[k] * sum[k] - squares[k]));
    out.Store(y + i * dim + e);
  }
}

// A thread computes dx(i, s, e) for all s and a pack of kCount neighbouring e.
template <unsigned kCount, typename T>
__global__ void __launch_bounds__(kBlockThreads, 3)
    FmBackwardKernel(const T* __restrict__ x, size_t stride, const T* dy, bool accumulate,
                     T* __restrict__ dx, size_t b, size_t slots, size_t dim) {
  const size_t i = size_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (i >= b) return;
  const size_t step = size_t{gridDim.y} * blockDim.x * kCount;
  for (size_t e = (size_t{blockIdx.y} * blockDim.x + threadIdx.x) * kCount; e < dim; e += step) {
    const T* in = x + i * stride + e;
    T* out = dx + i * stride + e;
    float sum[kCount] = {};
#pragma unroll 8
    for (size_t s = 0; s < slots; ++s) {
      const auto values = Pack<T, kCount>::Load(in + s * dim);
#pragma unroll
      for (unsigned k = 0; k < kCount; ++k) sum[k] += values[k];
    }
    const auto g = Pack<T, kCount>::Load(dy + i * dim + e);
#pragma unroll 4
    for (size_t s = 0; s < slots; ++s) {
      const auto values = Pack<T, kCount>::Load(in + s * dim);
      Pack<T, kCount> made;
      if (accumulate) made = Pack<T, kCount>::Load(out + s * dim);
      const Pack<T, kCount> before = made;
#pragma unroll
      for (unsigned k = 0; k < kCount; ++k) {
        const float grad = g[k] * (sum[k] - values[k]);
        made.Set(k, accumulate ? RoundedSum(before[k], grad) : grad);
      }
      made.Store(out + s * dim);
    }
  }
}

dim3 GridOf(dim3 block, size_t b, size_t packs) {
  return dim3(static_cast<unsigned>(CeilDivide(b, block.y)),
              static_cast<unsigned>(std::min(CeilDivide(packs, block.x), kMaxGridY)));
}

}  // namespace

void FmOrder2(ConstValues x, size_t x_stride, Values y, size_t b, size_t slots, size_t dim,
              Stream& stream) {
  ForType(x.type, [&]<typename T>() {
    constexpr unsigned kCount = 16 / sizeof(T);
    const bool wide = dim % kCount == 0 && x_stride % kCount == 0 && HoldsPacks(x.data, 16) &&
                      HoldsPacks(y.data, 16);
    const size_t packs = wide ? dim / kCount : dim;
    const dim3 block = RowBlock(packs);
    Launch("FmOrder2", wide ? FmForwardKernel<kCount, T> : FmForwardKernel<1, T>,
           GridOf(block, b, packs), block, 0, stream, As<T>(x), x_stride, As<T>(y), b, slots, dim);
  });
}

void FmOrder2Backward(ConstValues x, size_t x_stride, ConstValues dy, Write write, Values dx,
                      size_t b, size_t slots, size_t dim, Stream& stream) {
  ForType(x.type, [&]<typename T>() {
    constexpr unsigned kCount = 16 / sizeof(T);
    const bool wide = dim % kCount == 0 && x_stride % kCount == 0 && HoldsPacks(x.data, 16) &&
                      HoldsPacks(dy.data, 16) && HoldsPacks(dx.data, 16);
    const size_t packs = wide ? dim / kCount : dim;
    const dim3 block = RowBlock(packs);
    Launch("FmOrder2Backward", wide ? FmBackwardKernel<kCount, T> : FmBackwardKernel<1, T>,
           GridOf(block, b, packs), block, 0, stream, As<T>(x), x_stride, As<T>(dy),
           write == Write::kAccumulate, As<T>(dx), b, slots, dim);
  });
}

}  // namespace cistern::op::gpu
