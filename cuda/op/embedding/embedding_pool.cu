// Memory traffic in bytes, with L occurrences of U distinct rows and O outputs (gpu.md's formulas):
//   EmbeddingPool          4 U dim from memory (repeats hit the cache) + 4 L + 4 O + s O dim
//   EmbeddingPoolBackward  s O dim (repeats hit the cache) + 4 L + 4 U + 4 U dim, kMean 8 L more
// s: bytes per element of the activations. One FLOP per element of an occurrence.
#include "cuda/op/embedding/embedding_pool.h"

#include <algorithm>

#include "cuda/core/memory.h"
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

// `sum` plus the occurrences [begin, end), in order. The loads of kTogether occurrences are in
// flight together, also at the end of a segment: most segments are short.
template <unsigned kTogether, typename V, typename T>
__device__ inline V SumOver(const Occurrences<T>& in, uint32_t begin, uint32_t end, size_t column,
                            V sum = {}) {
  for (; begin < end; begin += kTogether) {
    uint32_t output[kTogether];
    V x[kTogether] = {};
#pragma unroll
    for (unsigned e = 0; e < kTogether; ++e) {
      output[e] = begin + e < end ? in.segment_outputs[begin + e] : 0;
    }
#pragma unroll
    for (unsigned e = 0; e < kTogether; ++e) {
      if (begin + e >= end) continue;
      x[e] = Load<V>(in.dout + PlaceOf(output[e], in.slots, in.stride, in.dim), column);
    }
#pragma unroll
    for (unsigned e = 0; e < kTogether; ++e) {
      if (begin + e < end) AddTo(sum, x[e], FactorOf(in, output[e]));
    }
  }
  return sum;
}

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
        sum = SumOver<4>(in, begin[k] + 1, end[k], c, sum);
      }
      Store(grads + (first + k * blockDim.y) * in.dim, c, sum);
    }
  }
}

// Occurrence counts are highly skewed, so whole blocks sum the long segments. These are cut into
// chunks, so that all multiprocessors get the same work. The list of chunks is in scratch; its
// order, which depends on timing, affects where sums are stored but not what is added to what.
constexpr unsigned kChunkBlocks = 1056;  // blocks that share the chunks: 8 a multiprocessor of 132

struct Chunk {
  uint32_t row, part;  // part: of the row's segment
};
struct ChunkedRow {
  uint32_t row, first;  // first: its first chunk in the list; the others follow
};
struct ChunkLists {
  uint32_t* counts;  // [4]: of the chunks, and of the rows with several
  Chunk* chunks;
  ChunkedRow* rows;
  float* sums;  // [chunks, dim], of the rows with several
};

// As EmbeddingPoolBackwardScratchFloats assumes.
ChunkLists ListsIn(float* scratch, size_t occurrences, size_t distinct) {
  const size_t chunks = SegmentChunksMax(occurrences, distinct);
  float* const list = scratch + 4;
  float* const of_rows = list + 4 * CeilDivide(chunks, 2);
  return {reinterpret_cast<uint32_t*>(scratch), reinterpret_cast<Chunk*>(list),
          reinterpret_cast<ChunkedRow*>(of_rows),
          of_rows + 4 * CeilDivide(occurrences / kSegmentChunk, 2)};
}

__device__ inline uint32_t ChunksOf(uint32_t length) {
  return (length + kSegmentChunk - 1) / kSegmentChunk;
}

static __global__ void __launch_bounds__(kBlockThreads)
    ListChunksKernel(const uint32_t* segment_offsets, size_t distinct, ChunkLists lists) {
  const size_t i = size_t{blockIdx.x} * kBlockThreads + threadIdx.x;
  if (i >= distinct) return;
  const uint32_t length = segment_offsets[i + 1] - segment_offsets[i];
  if (length <= kLongSegment) return;
  const auto row = static_cast<uint32_t>(i);
  const uint32_t parts = ChunksOf(length);
  const uint32_t first = atomicAdd(&lists.counts[0], parts);
  for (uint32_t part = 0; part < parts; ++part) lists.chunks[first + part] = {row, part};
  if (parts > 1) lists.rows[atomicAdd(&lists.counts[1], 1u)] = {row, first};
}

// Thread (x, y) gets x's sum over all y, added as a tree; all threads of the block take part.
template <typename V>
__device__ inline V SumOverY(V value) {
  __shared__ V sums[kBlockThreads];
  const unsigned at = threadIdx.y * blockDim.x + threadIdx.x;
  __syncthreads();  // the last sum has been read
  sums[at] = value;
  for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y < half) AddTo(sums[at], sums[at + half * blockDim.x], 1.0f);
  }
  __syncthreads();
  return sums[threadIdx.x];
}

// A block sums a chunk: threadIdx.x runs over the vector, and threadIdx.y over equal parts of the
// chunk.
template <typename V, typename T>
__global__ void __launch_bounds__(kBlockThreads, 3)
    ChunkSumsKernel(Occurrences<T> in, const uint32_t* segment_offsets, ChunkLists lists,
                    float* grads) {
  const size_t width = in.dim / kFloatsOf<V>;
  const uint32_t count = lists.counts[0];
  for (uint32_t i = blockIdx.x; i < count; i += gridDim.x) {
    const Chunk chunk = lists.chunks[i];
    const uint32_t begin = segment_offsets[chunk.row];
    const uint32_t length = segment_offsets[chunk.row + 1] - begin, parts = ChunksOf(length);
    const auto cut = [&](size_t of, uint32_t part, uint32_t among) {
      return static_cast<uint32_t>(of * part / among);
    };
    const uint32_t first = cut(length, chunk.part, parts);
    const uint32_t size = cut(length, chunk.part + 1, parts) - first;
    const uint32_t from = begin + first + cut(size, threadIdx.y, blockDim.y);
    const uint32_t to = begin + first + cut(size, threadIdx.y + 1, blockDim.y);
    float* const out = parts == 1 ? grads + chunk.row * in.dim : lists.sums + i * in.dim;
    for (size_t start = 0; start < width; start += blockDim.x) {
      const size_t c = start + threadIdx.x;
      const V sum = SumOverY(c < width ? SumOver<8, V>(in, from, to, c) : V{});
      if (threadIdx.y == 0 && c < width) Store(out, c, sum);
    }
  }
}

// Adds the chunks of each row that has several.
template <typename V>
__global__ void __launch_bounds__(kBlockThreads)
    ChunkedRowsKernel(const uint32_t* segment_offsets, ChunkLists lists, float* grads, size_t dim) {
  const size_t width = dim / kFloatsOf<V>;
  const uint32_t count = lists.counts[1];
  for (uint32_t i = blockIdx.x; i < count; i += gridDim.x) {
    const ChunkedRow row = lists.rows[i];
    const uint32_t parts = ChunksOf(segment_offsets[row.row + 1] - segment_offsets[row.row]);
    for (size_t start = 0; start < width; start += blockDim.x) {
      const size_t c = start + threadIdx.x;
      V sum{};
      if (c < width) {
#pragma unroll 4
        for (uint32_t part = threadIdx.y; part < parts; part += blockDim.y) {
          AddTo(sum, Load<V>(lists.sums + (size_t{row.first} + part) * dim, c), 1.0f);
        }
      }
      sum = SumOverY(sum);
      if (threadIdx.y == 0 && c < width) Store(grads + row.row * dim, c, sum);
    }
  }
}

template <typename V, typename T>
void LaunchBackward(const Occurrences<T>& in, const uint32_t* segment_offsets, size_t occurrences,
                    float* grads, size_t distinct, float* scratch, Stream& stream) {
  const dim3 block = RowBlock(in.dim / kFloatsOf<V>, kWarp);
  Launch("EmbeddingPoolBackward", ShortSegmentsKernel<V, T>,
         dim3(static_cast<unsigned>(CeilDivide(distinct, kSegments * block.y))), block, 0, stream,
         in, segment_offsets, grads, distinct);
  if (occurrences <= kLongSegment) return;
  const ChunkLists lists = ListsIn(scratch, occurrences, distinct);
  ZeroOnDevice(lists.counts, 4 * sizeof(uint32_t), stream);
  Launch("EmbeddingPoolBackward: chunks", ListChunksKernel,
         dim3(static_cast<unsigned>(CeilDivide(distinct, kBlockThreads))), dim3(kBlockThreads), 0,
         stream, segment_offsets, distinct, lists);
  const auto blocks = [&](size_t most) {
    return dim3(static_cast<unsigned>(std::min<size_t>(kChunkBlocks, most)));
  };
  Launch("EmbeddingPoolBackward: long segments", ChunkSumsKernel<V, T>,
         blocks(SegmentChunksMax(occurrences, distinct)), block, 0, stream, in, segment_offsets,
         lists, grads);
  Launch("EmbeddingPoolBackward: chunked rows", ChunkedRowsKernel<V>,
         blocks(occurrences / kSegmentChunk), block, 0, stream, segment_offsets, lists, grads,
         in.dim);
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
                           size_t occurrences, float* grads, size_t distinct, size_t slots,
                           size_t dim, float* scratch, Stream& stream) {
  ForType(dout.type, [&]<typename T>() {
    const Occurrences<T> in = {As<T>(dout),
                               dout_stride,
                               pool == Pool::kMean ? offsets : nullptr,
                               segment_outputs,
                               static_cast<uint32_t>(slots),
                               dim};
    if (dim == 0 || distinct == 0) return;
    if (dim % 4 == 0 && dout_stride % 4 == 0 && HoldsQuads(in.dout) && HoldsQuads(grads)) {
      LaunchBackward<float4>(in, segment_offsets, occurrences, grads, distinct, scratch, stream);
    } else {
      LaunchBackward<float>(in, segment_offsets, occurrences, grads, distinct, scratch, stream);
    }
  });
}

}  // namespace cistern::op::gpu
