// Memory traffic in bytes, with L occurrences of U distinct rows and O outputs (gpu.md's formulas):
//   EmbeddingPool          4 U dim from memory (repeats hit the cache) + 4 L + 4 O + s O dim
//   EmbeddingPoolBackward  s O dim (repeats hit the cache) + 4 L + 4 U + 4 U dim, kMean 8 L more
// s: bytes per element of the activations. One FLOP per element of an occurrence.
#include "cuda/op/embedding/embedding_pool.h"

#include <algorithm>

#include "cuda/op/primitive/map.cuh"
#include "cuda/op/primitive/quad.cuh"

namespace cistern::op::gpu {
namespace {

// The number of floats in V: four where alignment allows it, else one.
template <typename V>
inline constexpr unsigned kFloatsOf = sizeof(V) / sizeof(float);

__device__ inline void AddTo(float& sum, float x, float factor) {
  sum += factor * x;
}
__device__ inline void AddTo(float4& sum, float4 x, float factor) {
  sum.x += factor * x.x;
  sum.y += factor * x.y;
  sum.z += factor * x.z;
  sum.w += factor * x.w;
}
__device__ inline void ScaleBy(float& x, float factor) {
  x *= factor;
}
__device__ inline void ScaleBy(float4& x, float factor) {
  x = make_float4(x.x * factor, x.y * factor, x.z * factor, x.w * factor);
}

// The element, or quad, at `column`, as floats.
template <typename V, typename T>
__device__ inline V Load(const T* x, size_t column) {
  if constexpr (kFloatsOf<V> == 4) {
    return LoadQuad(x + 4 * column);
  } else {
    return x[column];
  }
}
template <typename T>
__device__ inline void Store(T* x, size_t column, float value) {
  x[column] = value;
}
template <typename T>
__device__ inline void Store(T* x, size_t column, float4 value) {
  StoreQuad(x + 4 * column, value);
}

// The factor of an output that pools `count` rows.
__device__ inline float PoolFactor(bool mean, uint32_t count) {
  return mean && count > 1 ? 1.0f / static_cast<float>(count) : 1.0f;
}

// The offset of the vector of output o in a matrix with `stride` elements per sample.
__device__ inline size_t PlaceOf(uint32_t o, uint32_t slots, size_t stride, size_t dim) {
  if (stride == slots * dim) return o * dim;
  return size_t{o / slots} * stride + o % slots * dim;
}

constexpr unsigned kOutputs = 4;  // outputs per thread, whose first rows are in flight together

// threadIdx.x runs over the vector, threadIdx.y over outputs. The second launch bound is the number
// of resident blocks per multiprocessor: without it the compiler targets more and spills registers.
template <typename V, typename T>
__global__ void __launch_bounds__(kBlockThreads, 3)
    PoolKernel(const float* weights, size_t stride, const uint32_t* rows, const uint32_t* offsets,
               bool mean, T* out, size_t out_stride, uint32_t outputs, uint32_t slots, size_t dim) {
  const uint32_t first = blockIdx.x * kOutputs * blockDim.y + threadIdx.y;
  uint32_t from[kOutputs], count[kOutputs], row[kOutputs];
#pragma unroll
  for (unsigned k = 0; k < kOutputs; ++k) {
    const uint32_t o = first + k * blockDim.y;
    from[k] = o < outputs ? offsets[o] : 0;
    count[k] = o < outputs ? offsets[o + 1] - from[k] : 0;
  }
#pragma unroll
  for (unsigned k = 0; k < kOutputs; ++k) row[k] = count[k] > 0 ? rows[from[k]] : 0;
  for (size_t c = threadIdx.x; c < dim / kFloatsOf<V>; c += blockDim.x) {
    V sum[kOutputs] = {};
#pragma unroll
    for (unsigned k = 0; k < kOutputs; ++k) {
      if (count[k] > 0) sum[k] = Load<V>(weights + row[k] * stride, c);
    }
#pragma unroll
    for (unsigned k = 0; k < kOutputs; ++k) {
      const uint32_t o = first + k * blockDim.y;
      if (o >= outputs) continue;
#pragma unroll 4
      for (uint32_t j = 1; j < count[k]; ++j) {
        AddTo(sum[k], Load<V>(weights + rows[from[k] + j] * stride, c), 1.0f);
      }
      ScaleBy(sum[k], PoolFactor(mean, count[k]));
      Store(out + PlaceOf(o, slots, out_stride, dim), c, sum[k]);
    }
  }
}

// The occurrences whose output gradients make up a row's gradient.
template <typename T>
struct Occurrences {
  const T* dout;
  size_t stride;
  const uint32_t* offsets;  // null unless kMean
  const uint32_t* segment_outputs;
  uint32_t slots;
  size_t dim;
};

template <typename T>
__device__ inline float FactorOf(const Occurrences<T>& in, uint32_t o) {
  return in.offsets == nullptr ? 1.0f : PoolFactor(true, in.offsets[o + 1] - in.offsets[o]);
}

template <typename V, typename T>
__device__ inline V SumOver(const Occurrences<T>& in, uint32_t begin, uint32_t end, size_t column,
                            V sum = {}) {
#pragma unroll 4
  for (uint32_t j = begin; j < end; ++j) {
    const uint32_t o = in.segment_outputs[j];
    AddTo(sum, Load<V>(in.dout + PlaceOf(o, in.slots, in.stride, in.dim), column), FactorOf(in, o));
  }
  return sum;
}

// Occurrence counts are highly skewed. A whole block sums each row with more occurrences than this.
constexpr uint32_t kLongSegment = 128;

constexpr unsigned kSegments = 4;  // per thread, whose first occurrences are in flight together

// threadIdx.x runs over the vector, threadIdx.y over distinct rows.
template <typename V, typename T>
__global__ void __launch_bounds__(kBlockThreads, 3)
    ShortSegmentsKernel(Occurrences<T> in, const uint32_t* segment_offsets, float* grads,
                        size_t distinct) {
  const size_t first = size_t{blockIdx.x} * kSegments * blockDim.y + threadIdx.y;
  uint32_t begin[kSegments], end[kSegments], output[kSegments];
  bool is_mine[kSegments];  // also without occurrences: its gradient is zero
#pragma unroll
  for (unsigned k = 0; k < kSegments; ++k) {
    const size_t i = first + k * blockDim.y;
    begin[k] = i < distinct ? segment_offsets[i] : 0;
    end[k] = i < distinct ? segment_offsets[i + 1] : 0;
    is_mine[k] = i < distinct && end[k] - begin[k] <= kLongSegment;
    if (!is_mine[k]) end[k] = begin[k];
  }
#pragma unroll
  for (unsigned k = 0; k < kSegments; ++k) {
    output[k] = begin[k] < end[k] ? in.segment_outputs[begin[k]] : 0;
  }
  for (size_t c = threadIdx.x; c < in.dim / kFloatsOf<V>; c += blockDim.x) {
    V x[kSegments] = {};
#pragma unroll
    for (unsigned k = 0; k < kSegments; ++k) {
      if (begin[k] >= end[k]) continue;
      x[k] = Load<V>(in.dout + PlaceOf(output[k], in.slots, in.stride, in.dim), c);
    }
#pragma unroll
    for (unsigned k = 0; k < kSegments; ++k) {
      if (!is_mine[k]) continue;
      V sum{};
      if (begin[k] < end[k]) {
        AddTo(sum, x[k], FactorOf(in, output[k]));
        sum = SumOver(in, begin[k] + 1, end[k], c, sum);
      }
      Store(grads + (first + k * blockDim.y) * in.dim, c, sum);
    }
  }
}

constexpr unsigned kLongThreads = 1024;
constexpr unsigned kLanes = 8;                       // per piece: a 128-byte line of float4
constexpr unsigned kPieces = kLongThreads / kLanes;  // per segment
constexpr unsigned kLongBlocks = 132;                // blocks that share the long segments

// A block sums the columns of slice blockIdx.y of every long segment among rows blockIdx.x,
// blockIdx.x + gridDim.x ... Neighbouring rows, which often have long segments together, go to
// different blocks. A segment is cut into kPieces equal parts, whose sums are added as a tree.
template <typename V, typename T>
__global__ void __launch_bounds__(kLongThreads, 1)
    LongSegmentsKernel(Occurrences<T> in, const uint32_t* segment_offsets, float* grads,
                       size_t distinct) {
  __shared__ uint32_t found[kLongThreads];
  __shared__ unsigned found_num;
  __shared__ V sums[kLongThreads];
  const unsigned lane = threadIdx.x % kLanes, piece = threadIdx.x / kLanes;
  const size_t c = size_t{blockIdx.y} * kLanes + lane;
  const bool has_column = c < in.dim / kFloatsOf<V>;
  const size_t mine = CeilDivide(distinct, gridDim.x);
  for (size_t first = 0; first < mine; first += kLongThreads) {
    if (threadIdx.x == 0) found_num = 0;
    __syncthreads();
    const size_t i = (first + threadIdx.x) * gridDim.x + blockIdx.x;
    if (first + threadIdx.x < mine && i < distinct &&
        segment_offsets[i + 1] - segment_offsets[i] > kLongSegment) {
      // The order in which long segments are found does not affect the sums.
      found[atomicAdd(&found_num, 1u)] = static_cast<uint32_t>(i);
    }
    __syncthreads();
    for (unsigned f = 0; f < found_num; ++f) {
      const uint32_t row = found[f];
      const uint32_t begin = segment_offsets[row];
      const size_t length = segment_offsets[row + 1] - begin;
      const auto from = static_cast<uint32_t>(length * piece / kPieces);
      const auto to = static_cast<uint32_t>(length * (piece + 1) / kPieces);
      sums[threadIdx.x] = has_column ? SumOver<V>(in, begin + from, begin + to, c) : V{};
      for (unsigned half = kPieces / 2; half > 0; half /= 2) {
        __syncthreads();
        if (piece < half) AddTo(sums[threadIdx.x], sums[threadIdx.x + half * kLanes], 1.0f);
      }
      if (piece == 0 && has_column) {
        Store(grads + row * in.dim, c, sums[lane]);
      }
      __syncthreads();
    }
    __syncthreads();
  }
}

template <typename V, typename T>
void LaunchBackward(const Occurrences<T>& in, const uint32_t* segment_offsets, float* grads,
                    size_t distinct, Stream& stream) {
  const size_t width = in.dim / kFloatsOf<V>;
  const dim3 block = RowBlock(width, kWarp);
  Launch("EmbeddingPoolBackward", ShortSegmentsKernel<V, T>,
         dim3(static_cast<unsigned>(CeilDivide(distinct, kSegments * block.y))), block, 0, stream,
         in, segment_offsets, grads, distinct);
  const auto blocks =
      static_cast<unsigned>(std::min<size_t>(kLongBlocks, CeilDivide(distinct, 64)));
  Launch("EmbeddingPoolBackward: long segments", LongSegmentsKernel<V, T>,
         dim3(blocks, static_cast<unsigned>(CeilDivide(width, kLanes))), dim3(kLongThreads), 0,
         stream, in, segment_offsets, grads, distinct);
}

}  // namespace

void EmbeddingPool(const float* weights, size_t stride, const uint32_t* rows,
                   const uint32_t* offsets, Pool pool, Values out, size_t out_stride, size_t b,
                   size_t slots, size_t dim, Stream& stream) {
  if (dim == 0) return;
  const size_t outputs = b * slots;
  ForType(out.type, [&]<typename T>() {
    const bool vectors = dim % 4 == 0 && stride % 4 == 0 && out_stride % 4 == 0 &&
                         HoldsQuads(weights) && HoldsQuads(As<T>(out));
    const dim3 block = RowBlock(vectors ? dim / 4 : dim, kWarp);
    const auto blocks = static_cast<unsigned>(CeilDivide(outputs, kOutputs * block.y));
    Launch("EmbeddingPool", vectors ? PoolKernel<float4, T> : PoolKernel<float, T>, dim3(blocks),
           block, 0, stream, weights, stride, rows, offsets, pool == Pool::kMean, As<T>(out),
           out_stride, static_cast<uint32_t>(outputs), static_cast<uint32_t>(slots), dim);
  });
}

void EmbeddingPoolBackward(ConstValues dout, size_t dout_stride, const uint32_t* offsets, Pool pool,
                           const uint32_t* segment_offsets, const uint32_t* segment_outputs,
                           float* grads, size_t distinct, size_t slots, size_t dim,
                           Stream& stream) {
  ForType(dout.type, [&]<typename T>() {
    const Occurrences<T> in = {As<T>(dout),
                               dout_stride,
                               pool == Pool::kMean ? offsets : nullptr,
                               segment_outputs,
                               static_cast<uint32_t>(slots),
                               dim};
    if (dim % 4 == 0 && dout_stride % 4 == 0 && HoldsQuads(in.dout) && HoldsQuads(grads)) {
      LaunchBackward<float4>(in, segment_offsets, grads, distinct, stream);
    } else {
      LaunchBackward<float>(in, segment_offsets, grads, distinct, stream);
    }
  });
}

}  // namespace cistern::op::gpu
