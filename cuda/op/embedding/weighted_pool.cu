// Memory traffic: that of EmbeddingPool and its backward, and 4 L (8 L backward) for the factors.
#include "cuda/op/embedding/weighted_pool.h"

#include <algorithm>

#include "cuda/op/primitive/map.cuh"

namespace cistern::op::gpu {
namespace {

// threadIdx.x runs over the vector, threadIdx.y over outputs.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    WeightedPoolKernel(const float* weights, size_t stride, const uint32_t* rows,
                       const float* factors, const uint32_t* offsets, T* out, size_t out_stride,
                       size_t outputs, size_t slots, size_t dim) {
  const size_t o = size_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (o >= outputs) return;
  T* const at = out + o / slots * out_stride + o % slots * dim;
  for (size_t e = threadIdx.x; e < dim; e += blockDim.x) {
    float sum = 0.0f;
    for (uint32_t j = offsets[o]; j < offsets[o + 1]; ++j) {
      sum += factors[j] * weights[rows[j] * stride + e];
    }
    at[e] = sum;
  }
}

// threadIdx.x runs over the vector, threadIdx.y over distinct rows.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    WeightedPoolBackwardKernel(const T* dout, size_t dout_stride, const float* factors,
                               const uint32_t* segment_offsets, const uint32_t* segment_outputs,
                               const uint32_t* segment_places, float* grads, size_t distinct,
                               size_t slots, size_t dim) {
  const size_t i = size_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (i >= distinct) return;
  for (size_t e = threadIdx.x; e < dim; e += blockDim.x) {
    float sum = 0.0f;
    for (uint32_t j = segment_offsets[i]; j < segment_offsets[i + 1]; ++j) {
      const size_t o = segment_outputs[j];
      const float x = dout[o / slots * dout_stride + o % slots * dim + e];
      sum += factors[segment_places[j]] * x;
    }
    grads[i * dim + e] = sum;
  }
}

dim3 BlocksOf(size_t count, dim3 block) {
  return dim3(static_cast<unsigned>(CeilDivide(count, block.y)));
}

}  // namespace

void WeightedPool(const float* weights, size_t stride, const uint32_t* rows, const float* factors,
                  const uint32_t* offsets, Values out, size_t out_stride, size_t b, size_t slots,
                  size_t dim, Stream& stream) {
  if (dim == 0) return;
  const dim3 block = RowBlock(dim, kWarp);
  ForType(out.type, [&]<typename T>() {
    Launch("WeightedPool", WeightedPoolKernel<T>, BlocksOf(b * slots, block), block, 0, stream,
           weights, stride, rows, factors, offsets, As<T>(out), out_stride, b * slots, slots, dim);
  });
}

void WeightedPoolBackward(ConstValues dout, size_t dout_stride, const float* factors,
                          const uint32_t* segment_offsets, const uint32_t* segment_outputs,
                          const uint32_t* segment_places, float* grads, size_t distinct,
                          size_t slots, size_t dim, Stream& stream) {
  if (dim == 0) return;
  const dim3 block = RowBlock(dim, kWarp);
  ForType(dout.type, [&]<typename T>() {
    Launch("WeightedPoolBackward", WeightedPoolBackwardKernel<T>, BlocksOf(distinct, block), block,
           0, stream, As<T>(dout), dout_stride, factors, segment_offsets, segment_outputs,
           segment_places, grads, distinct, slots, dim);
  });
}

}  // namespace cistern::op::gpu
