// Memory traffic in bytes, with L occurrences of U distinct rows and O outputs (gpu.md's formulas):
//   EmbeddingPool          4 U dim from memory (repeats hit the cache) + 4 L + 4 O + s O dim
//   EmbeddingPoolBackward  s O dim (repeats hit the cache) + 4 L + 4 U + 4 U dim, kMean 8 L more;
//                          the sum of squares is made of what the threads hold
// s: bytes per element of the activations. One FLOP per element of an occurrence.
#include "cuda/op/embedding/embedding_pool.h"

#include <algorithm>

#include "cuda/core/memory.h"
#include "cuda/op/primitive/quad.cuh"
#include "cuda/op/primitive/reduce.cuh"

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

// The sum of the occurrences [begin, end), in order. The loads of kTogether occurrences are in
// flight together.
template <unsigned kTogether, typename V, typename T>
__device__ inline V SumOver(const Occurrences<T>& in, uint32_t begin, uint32_t end, size_t column) {
  V sum{};
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

__device__ inline double SquareOf(float x) {
  return double{x} * double{x};
}
__device__ inline double SquareOf(float4 x) {
  return SquareOf(x.x) + SquareOf(x.y) + SquareOf(x.z) + SquareOf(x.w);
}

constexpr unsigned kSegments = 4;  // neighbouring segments that the same threads sum
constexpr unsigned kInFlight = 6;  // occurrences whose loads are in flight together

__device__ inline bool IsLong(const uint32_t* segment_offsets, size_t i) {
  return segment_offsets[i + 1] - segment_offsets[i] > kLongSegment;
}

// Stores the gradients of the short segments [i, last) at `column`, and returns the sum of their
// squares. The occurrences of neighbouring segments are neighbours too. Therefore they are read as
// one stream, however short the segments are; a segment without occurrences has a gradient of zero.
template <typename V, typename T>
__device__ inline double SumSegments(const Occurrences<T>& in, const uint32_t* segment_offsets,
                                     size_t i, size_t last, size_t column, float* grads) {
  const uint32_t end = segment_offsets[last];
  uint32_t at = segment_offsets[i], next = segment_offsets[i + 1];
  V sum{};
  double squares = 0;
  const auto finish = [&] {
    Store(grads + i * in.dim, column, sum);
    squares += SquareOf(sum);
    sum = V{};
    if (++i < last) next = segment_offsets[i + 1];
  };
  uint32_t output[kInFlight];
  const auto load_outputs = [&] {
#pragma unroll
    for (unsigned e = 0; e < kInFlight; ++e) {
      if (at + e < end) output[e] = in.segment_outputs[at + e];
    }
  };
  load_outputs();
  while (at < end) {
    const uint32_t first = at;
    V x[kInFlight];
    float factor[kInFlight];
#pragma unroll
    for (unsigned e = 0; e < kInFlight; ++e) {
      if (first + e >= end) continue;
      x[e] = Load<V>(in.dout + PlaceOf(output[e], in.slots, in.stride, in.dim), column);
      factor[e] = FactorOf(in, output[e]);
    }
    at += kInFlight;
    load_outputs();  // while the vectors are on their way
#pragma unroll
    for (unsigned e = 0; e < kInFlight; ++e) {
      if (first + e >= end) continue;
      while (first + e == next) finish();
      AddTo(sum, x[e], factor[e]);
    }
  }
  while (i < last) finish();
  return squares;
}

// `lanes` threads, a power of two, per vector. square_parts: by block; null: not wanted.
template <typename V, typename T>
__global__ void __launch_bounds__(kBlockThreads, 3)
    ShortSegmentsKernel(Occurrences<T> in, const uint32_t* segment_offsets, float* grads,
                        size_t distinct, unsigned lanes, double* square_parts) {
  const size_t first =
      (size_t{blockIdx.x} * (kBlockThreads / lanes) + threadIdx.x / lanes) * kSegments;
  const size_t end = first + kSegments < distinct ? first + kSegments : distinct;
  double squares = 0;
  for (size_t c = threadIdx.x % lanes; c < in.dim / kFloatsOf<V>; c += lanes) {
    for (size_t i = first; i < end;) {
      size_t last = i;
      while (last < end && !IsLong(segment_offsets, last)) ++last;
      if (last > i) squares += SumSegments<V>(in, segment_offsets, i, last, c, grads);
      i = last + 1;
    }
  }
  if (square_parts == nullptr) return;
  squares = BlockSum(squares);
  if (threadIdx.x == 0) square_parts[blockIdx.x] = squares;
}

// Adds the squares of long segments to the parts of the blocks that left them out. The blocks that
// sum these segments cannot: which of them gets which segment depends on timing.
template <typename V>
__global__ void __launch_bounds__(kBlockThreads)
    LongSquaresKernel(const uint32_t* segment_offsets, const float* grads, size_t distinct,
                      size_t dim, unsigned lanes, double* square_parts) {
  const size_t first =
      (size_t{blockIdx.x} * (kBlockThreads / lanes) + threadIdx.x / lanes) * kSegments;
  const size_t end = first + kSegments < distinct ? first + kSegments : distinct;
  double squares = 0;
  for (size_t i = first; i < end; ++i) {
    if (!IsLong(segment_offsets, i)) continue;
    for (size_t c = threadIdx.x % lanes; c < dim / kFloatsOf<V>; c += lanes) {
      squares += SquareOf(Load<V>(grads + i * dim, c));
    }
  }
  squares = BlockSum(squares);
  if (threadIdx.x == 0) square_parts[blockIdx.x] += squares;
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
void LaunchLongSegments(const Occurrences<T>& in, const uint32_t* segment_offsets,
                        size_t occurrences, const ChunkLists& lists, float* grads, size_t distinct,
                        Stream& stream) {
  ZeroOnDevice(lists.counts, 4 * sizeof(uint32_t), stream);
  Launch("EmbeddingPoolBackward: chunks", ListChunksKernel,
         dim3(static_cast<unsigned>(CeilDivide(distinct, kBlockThreads))), dim3(kBlockThreads), 0,
         stream, segment_offsets, distinct, lists);
  const dim3 block = RowBlock(in.dim / kFloatsOf<V>, kWarp);
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

template <typename V, typename T>
void LaunchBackward(const Occurrences<T>& in, const uint32_t* segment_offsets, size_t occurrences,
                    float* grads, size_t distinct, double* square_sum, float* scratch,
                    Stream& stream) {
  const dim3 block = RowBlock(in.dim / kFloatsOf<V>, kWarp);
  const size_t pieces = CeilDivide(distinct, kSegments * block.y);
  const dim3 grid(static_cast<unsigned>(pieces));
  double* const square_parts = square_sum == nullptr ? nullptr : reinterpret_cast<double*>(scratch);
  Launch("EmbeddingPoolBackward", ShortSegmentsKernel<V, T>, grid, dim3(kBlockThreads), 0, stream,
         in, segment_offsets, grads, distinct, block.x, square_parts);
  if (occurrences > kLongSegment) {
    const ChunkLists lists = ListsIn(scratch + SquarePartsFloats(distinct), occurrences, distinct);
    LaunchLongSegments<V>(in, segment_offsets, occurrences, lists, grads, distinct, stream);
    if (square_sum != nullptr) {
      Launch("EmbeddingPoolBackward: squares", LongSquaresKernel<V>, grid, dim3(kBlockThreads), 0,
             stream, segment_offsets, grads, distinct, in.dim, block.x, square_parts);
    }
  }
  if (square_sum == nullptr) return;
  AddPieces("EmbeddingPoolBackward: squares", square_parts, pieces, 1.0, square_sum, stream);
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
                           size_t occurrences, float* grads, double* square_sum, size_t distinct,
                           size_t slots, size_t dim, float* scratch, Stream& stream) {
  if (dim == 0 || distinct == 0) {
    if (square_sum != nullptr) ZeroOnDevice(square_sum, sizeof(double), stream);
    return;
  }
  ForType(dout.type, [&]<typename T>() {
    const Occurrences<T> in = {As<T>(dout),
                               dout_stride,
                               pool == Pool::kMean ? offsets : nullptr,
                               segment_outputs,
                               static_cast<uint32_t>(slots),
                               dim};
    if (dim % 4 == 0 && dout_stride % 4 == 0 && HoldsQuads(in.dout) && HoldsQuads(grads)) {
      LaunchBackward<float4>(in, segment_offsets, occurrences, grads, distinct, square_sum, scratch,
                             stream);
    } else {
      LaunchBackward<float>(in, segment_offsets, occurrences, grads, distinct, square_sum, scratch,
                            stream);
    }
  });
}

}  // namespace cistern::op::gpu
