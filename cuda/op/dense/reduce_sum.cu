// Memory traffic for elements of s bytes: ScaledSum s per element of x and of y; ScaledRepeat s per
// element of y (2 s where it accumulates) and of x. One or two FLOPs per element.
#include "cuda/op/dense/reduce_sum.h"

#include "cuda/op/primitive/map_packs.cuh"
#include "cuda/op/primitive/reduce.cuh"

namespace cistern::op::gpu {
namespace {

// What becomes of a sum.
struct SumUse {
  float factor;
  bool accumulate;

  template <typename T>
  __device__ void Store(float sum, T* y) const {
    *y = accumulate ? RoundedSum(*y, factor * sum) : factor * sum;
  }
};

// One thread per output y(o, i).
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    ThreadSumsKernel(const T* x, SumUse use, T* y, size_t outputs, size_t n, size_t inner) {
  const size_t at = size_t{blockIdx.x} * kBlockThreads + threadIdx.x;
  if (at >= outputs) return;
  const T* from = x + at / inner * n * inner + at % inner;
  float sum = 0.0f;
#pragma unroll 8
  for (size_t a = 0; a < n; ++a) sum += from[a * inner];
  use.Store(sum, y + at);
}

// blockDim.x threads per row; inner is 1.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    RowSumsKernel(const T* x, SumUse use, T* y, size_t outer, size_t n) {
  const size_t o = size_t{blockIdx.x} * blockDim.y + threadIdx.y;
  float sum = 0.0f;
  if (o < outer) {
    for (size_t a = threadIdx.x; a < n; a += blockDim.x) sum += x[o * n + a];
  }
  for (unsigned offset = blockDim.x / 2; offset > 0; offset /= 2) {
    sum += __shfl_xor_sync(kFullWarp, sum, static_cast<int>(offset));
  }
  if (threadIdx.x == 0 && o < outer) use.Store(sum, y + o);
}

// A block adds the columns blockIdx.x * blockDim.x ... of one o = blockIdx.y: for few outputs with
// many terms each.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    BlockSumsKernel(const T* x, SumUse use, T* y, size_t n, size_t inner) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const T* from = x + blockIdx.y * n * inner + i;
  double sum[1] = {};
  if (i < inner) {
#pragma unroll 8
    for (size_t a = threadIdx.y; a < n; a += blockDim.y) sum[0] += from[a * inner];
  }
  AddOverRows(sum);
  if (threadIdx.y == 0 && i < inner) {
    use.Store(static_cast<float>(sum[0]), y + blockIdx.y * inner + i);
  }
}

// With fewer outputs, one thread per output would leave the GPU idle. (Without scratch, blocks
// cannot share the terms of one output.)
constexpr size_t kEnoughThreads = 32768;

template <typename T>
void ScaledSumOf(const T* x, SumUse use, T* y, size_t outer, size_t n, size_t inner,
                 Stream& stream) {
  const size_t outputs = outer * inner;
  if (outputs == 0) return;
  if (inner > 1 && outputs < kEnoughThreads && outer <= kMaxGridY && n > 32) {
    const dim3 block = RowBlock(inner, kSumWidth);
    const dim3 grid(static_cast<unsigned>(CeilDivide(inner, block.x)),
                    static_cast<unsigned>(outer));
    return Launch("ScaledSum", BlockSumsKernel<T>, grid, block, 0, stream, x, use, y, n, inner);
  }
  if (inner == 1 && n > 8) {
    const dim3 block = RowBlock(n, kWarp);
    return Launch("ScaledSum", RowSumsKernel<T>,
                  dim3(static_cast<unsigned>(CeilDivide(outer, block.y))), block, 0, stream, x, use,
                  y, outer, n);
  }
  Launch("ScaledSum", ThreadSumsKernel<T>,
         dim3(static_cast<unsigned>(CeilDivide(outputs, kBlockThreads))), dim3(kBlockThreads), 0,
         stream, x, use, y, outputs, n, inner);
}

template <typename T>
void ScaledRepeatOf(float factor, const T* x, Write write, T* y, size_t outer, size_t n,
                    size_t inner, Stream& stream) {
  // Row r of y, [outer * n, inner], is row r / n of x.
  MapMatrices(
      "ScaledRepeat", outer * n, inner, write, y, inner, stream,
      [=] __device__(float g) { return factor * g; }, RepeatedRows<T>{{x, inner}, n});
}

}  // namespace

void ScaledSum(float factor, ConstValues x, Write write, Values y, size_t outer, size_t n,
               size_t inner, Stream& stream) {
  const SumUse use = {factor, write == Write::kAccumulate};
  ForType(x.type,
          [&]<typename T>() { ScaledSumOf(As<T>(x), use, As<T>(y), outer, n, inner, stream); });
}

void ScaledRepeat(float factor, ConstValues x, Write write, Values y, size_t outer, size_t n,
                  size_t inner, Stream& stream) {
  ForType(x.type, [&]<typename T>() {
    ScaledRepeatOf(factor, As<T>(x), write, As<T>(y), outer, n, inner, stream);
  });
}

}  // namespace cistern::op::gpu
