// Memory traffic for b n elements of s bytes: Softmax 2 s (the second and third read of a row hit
// the cache), backward 3 s (4 s where it accumulates). Two exponentials per element in Softmax,
// which is cheaper than storing the first.
#include "cuda/op/dense/softmax.h"

#include <cmath>

#include "cuda/op/primitive/map_packs.cuh"
#include "cuda/op/primitive/reduce.cuh"

namespace cistern::op::gpu {
namespace {

// blockDim.x threads, a power of two up to a warp, share a row. Each gets the result.
__device__ inline float SumOfRow(float value) {
  for (unsigned offset = blockDim.x / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(kFullWarp, value, static_cast<int>(offset));
  }
  return value;
}
__device__ inline float LargestOfRow(float value) {
  for (unsigned offset = blockDim.x / 2; offset > 0; offset /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kFullWarp, value, static_cast<int>(offset)));
  }
  return value;
}

// A row beyond the last has no columns, so that all threads of a warp take part in the shuffles.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    SoftmaxKernel(float factor, const T* x, T* y, size_t b, size_t n) {
  const size_t r = size_t{blockIdx.x} * blockDim.y + threadIdx.y;
  const size_t columns = r < b ? n : 0;
  const T* from = x + r * n;
  T* to = y + r * n;
  float largest = -INFINITY;
  for (size_t c = threadIdx.x; c < columns; c += blockDim.x) {
    largest = fmaxf(largest, factor * float{from[c]});
  }
  largest = LargestOfRow(largest);
  float sum = 0.0f;
  for (size_t c = threadIdx.x; c < columns; c += blockDim.x) {
    sum += expf(factor * float{from[c]} - largest);
  }
  const float share = 1.0f / SumOfRow(sum);
  for (size_t c = threadIdx.x; c < columns; c += blockDim.x) {
    to[c] = expf(factor * float{from[c]} - largest) * share;
  }
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    SoftmaxBackwardKernel(float factor, const T* y, const T* dy, bool accumulate, T* dx, size_t b,
                          size_t n) {
  const size_t r = size_t{blockIdx.x} * blockDim.y + threadIdx.y;
  const size_t columns = r < b ? n : 0;
  const T *out = y + r * n, *g = dy + r * n;
  T* to = dx + r * n;
  float dot = 0.0f;
  for (size_t c = threadIdx.x; c < columns; c += blockDim.x) dot += float{out[c]} * float{g[c]};
  dot = SumOfRow(dot);
  for (size_t c = threadIdx.x; c < columns; c += blockDim.x) {
    const float grad = factor * float{out[c]} * (float{g[c]} - dot);
    to[c] = accumulate ? RoundedSum(to[c], grad) : grad;
  }
}

dim3 SoftmaxGrid(size_t b, dim3 block) {
  return dim3(static_cast<unsigned>(CeilDivide(b, block.y)));
}

}  // namespace

void Softmax(float factor, ConstValues x, Values y, size_t b, size_t n, Stream& stream) {
  if (b == 0 || n == 0) return;
  const dim3 block = RowBlock(n, kWarp);
  ForType(x.type, [&]<typename T>() {
    Launch("Softmax", SoftmaxKernel<T>, SoftmaxGrid(b, block), block, 0, stream, factor, As<T>(x),
           As<T>(y), b, n);
  });
}

void SoftmaxBackward(float factor, ConstValues y, ConstValues dy, Write write, Values dx, size_t b,
                     size_t n, Stream& stream) {
  if (b == 0 || n == 0) return;
  const dim3 block = RowBlock(n, kWarp);
  ForType(y.type, [&]<typename T>() {
    Launch("SoftmaxBackward", SoftmaxBackwardKernel<T>, SoftmaxGrid(b, block), block, 0, stream,
           factor, As<T>(y), As<T>(dy), write == Write::kAccumulate, As<T>(dx), b, n);
  });
}

}  // namespace cistern::op::gpu
