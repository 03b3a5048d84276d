// Memory traffic per sample of V = slots + 1 vectors with elements of s bytes: forward s (V dim +
// dim + V (V - 1) / 2 + 1); backward s (2 V dim + dim + V (V - 1) / 2), and s V dim more where it
// accumulates. FLOPs: forward V (V - 1) dim, backward 2 V (V - 1) dim.
//
// 16-bit activations use tensor cores where possible (dot_interaction_tensor.cuh). In the kernels
// of this file a block computes one sample, with its vectors as floats in shared memory. A thread
// computes a tile, so each loaded value takes part in 4 (forward) or 8 (backward) products.
#include "cuda/op/dense/dot_interaction.h"

#include <algorithm>

#include "cuda/op/dense/dot_interaction_tensor.cuh"
#include "cuda/op/primitive/map.cuh"
#include "cuda/op/primitive/quad.cuh"

namespace cistern::op::gpu {
namespace {

// The vectors of one sample: vector 0 is the mlp's, vector 1 the first slot's.
template <typename Element>
struct Vectors {
  Element* mlp;
  Element* embedding;
  size_t dim;
  __device__ Element* at(size_t i) const { return i == 0 ? mlp : embedding + (i - 1) * dim; }
};

// The index of pair (i, j), i > j, among the pairs.
__host__ __device__ inline unsigned PairIndex(unsigned i, unsigned j) {
  return i * (i - 1) / 2 + j;
}

// Copies columns [first, first + chunk) of the vectors to `to`, row by row with row pitch `pitch`.
// Pads with zeros beyond the last vector and the last column. chunk, pitch: multiples of 4.
template <typename T>
__device__ inline void LoadVectors(const Vectors<const T>& in, unsigned vectors, unsigned rows,
                                   size_t first, unsigned chunk, unsigned pitch, bool aligned,
                                   float* to) {
  const unsigned quads = chunk / 4;
  for (unsigned item = threadIdx.x; item < rows * quads; item += blockDim.x) {
    const unsigned i = item / quads, q = item % quads;
    const size_t column = first + 4 * q;
    float4 value = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (i < vectors && aligned && column < in.dim) {
      value = LoadQuad(in.at(i) + column);
    } else if (i < vectors) {
      const T* from = in.at(i);
      if (column < in.dim) value.x = from[column];
      if (column + 1 < in.dim) value.y = from[column + 1];
      if (column + 2 < in.dim) value.z = from[column + 2];
      if (column + 3 < in.dim) value.w = from[column + 3];
    }
    *reinterpret_cast<float4*>(to + i * pitch + 4 * q) = value;
  }
}

constexpr unsigned kTile = 4;  // a thread's tile of pairs is kTile x kTile

// Maps a tile number to its position in the lower triangle, row by row: (0, 0), (1, 0), (1, 1) ...
__device__ inline void TileOf(unsigned tile, unsigned* row, unsigned* column) {
  unsigned r = static_cast<unsigned>((sqrtf(8.0f * static_cast<float>(tile) + 1.0f) - 1.0f) / 2);
  while (r * (r + 1) / 2 > tile) --r;
  while ((r + 1) * (r + 2) / 2 <= tile) ++r;
  *row = r;
  *column = tile - r * (r + 1) / 2;
}

// Adds the products of a chunk to the dots of a tile.
__device__ inline void AddProducts(const float* vectors, unsigned chunk, unsigned pitch,
                                   unsigned side, unsigned row, unsigned column,
                                   float (&dot)[kTile][kTile]) {
  for (unsigned c = 0; c < chunk; c += 4) {
    float4 a[kTile], b[kTile];
#pragma unroll
    for (unsigned k = 0; k < kTile; ++k) {
      a[k] = *reinterpret_cast<const float4*>(vectors + (row + k * side) * pitch + c);
      b[k] = *reinterpret_cast<const float4*>(vectors + (column + k * side) * pitch + c);
    }
#pragma unroll
    for (unsigned i = 0; i < kTile; ++i) {
#pragma unroll
      for (unsigned j = 0; j < kTile; ++j) {
        dot[i][j] += a[i].x * b[j].x;
        dot[i][j] += a[i].y * b[j].y;
        dot[i][j] += a[i].z * b[j].z;
        dot[i][j] += a[i].w * b[j].w;
      }
    }
  }
}

// With side = ceil(V / 4), tile (r, c) holds the pairs of the vectors r + k side with the vectors
// c + k side, so that neighbouring threads read neighbouring rows, which are in different banks
// (pitch = chunk + 4).
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    PairsKernel(const T* mlp, const T* embedding, T* y, unsigned vectors, size_t dim,
                size_t columns, unsigned chunk, bool aligned) {
  CISTERN_DYNAMIC_SHARED(float4, shared_quads);
  auto* shared = reinterpret_cast<float*>(shared_quads);
  const size_t r = blockIdx.x;
  const Vectors<const T> in = {mlp + r * dim, embedding + r * (vectors - 1) * dim, dim};
  const unsigned side = (vectors + kTile - 1) / kTile, tiles = side * (side + 1) / 2;
  const unsigned pitch = chunk + 4;
  T* out = y + r * columns;
  for (unsigned first = 0; first < tiles; first += blockDim.x) {
    const unsigned tile = first + threadIdx.x;
    unsigned row = 0, column = 0;
    if (tile < tiles) TileOf(tile, &row, &column);
    float dot[kTile][kTile] = {};
    for (size_t c = 0; c < dim; c += chunk) {
      if (first == 0 || chunk < dim) {  // else already loaded
        __syncthreads();
        LoadVectors(in, vectors, side * kTile, c, chunk, pitch, aligned, shared);
        __syncthreads();
      }
      if (tile < tiles) AddProducts(shared, chunk, pitch, side, row, column, dot);
    }
    if (tile >= tiles) continue;
#pragma unroll
    for (unsigned k = 0; k < kTile; ++k) {
#pragma unroll
      for (unsigned l = 0; l < kTile; ++l) {
        const unsigned i = row + k * side, j = column + l * side;
        if (i >= vectors || j >= vectors || i == j || (row == column && i < j)) continue;
        out[dim + (i > j ? PairIndex(i, j) : PairIndex(j, i))] = dot[k][l];
      }
    }
  }
  for (size_t c = threadIdx.x; c < dim; c += blockDim.x) out[c] = in.mlp[c];
  if (threadIdx.x == 0) out[columns - 1] = 0.0f;
}

constexpr unsigned kRows = 8;  // a thread's tile of gradients is kRows vectors x 4 columns

// The destination of the gradients.
template <typename T>
struct Gradients {
  T *mlp, *embedding;  // may be null
  bool add_mlp, add_embedding;
};

// Writes four columns of a gradient, or those of them below `columns`. All four are one store, so
// that memory transactions are full.
template <typename T>
__device__ inline void WriteGradient(T* at, bool accumulate, const float (&value)[4], bool aligned,
                                     size_t columns) {
  if (aligned) {
    float4 sum = make_float4(value[0], value[1], value[2], value[3]);
    if (accumulate) {
      const float4 before = LoadQuad(at);
      sum = make_float4(before.x + sum.x, before.y + sum.y, before.z + sum.z, before.w + sum.w);
    }
    return StoreQuad(at, sum);
  }
#pragma unroll
  for (unsigned e = 0; e < 4; ++e) {
    if (e < columns) at[e] = accumulate ? at[e] + value[e] : value[e];
  }
}

// The gradient of pair (i, j), from a row of dy; zero on the diagonal and beyond the last vector.
template <typename T>
__device__ inline float PairGradient(const T* pairs, unsigned vectors, unsigned i, unsigned j) {
  if (i >= vectors || j >= vectors || i == j) return 0.0f;
  return pairs[i > j ? PairIndex(i, j) : PairIndex(j, i)];
}

// dT = G T, where G is the symmetric matrix of the pairs' gradients. With kKept, G [vectors, width]
// is in shared memory; otherwise (many slots) each product looks it up in dy.
template <bool kKept, typename T>
__global__ void __launch_bounds__(kBlockThreads)
    DotBackwardKernel(const T* mlp, const T* embedding, const T* dy, Gradients<T> gradients,
                      unsigned vectors, size_t dim, size_t columns, unsigned chunk, bool aligned) {
  CISTERN_DYNAMIC_SHARED(float4, shared_quads);
  const size_t r = blockIdx.x;
  const Vectors<const T> in = {mlp + r * dim, embedding + r * (vectors - 1) * dim, dim};
  const Vectors<T> out = {
      gradients.mlp == nullptr ? nullptr : gradients.mlp + r * dim,
      gradients.embedding == nullptr ? nullptr : gradients.embedding + r * (vectors - 1) * dim,
      dim};
  const unsigned row_tiles = (vectors + kRows - 1) / kRows, width = row_tiles * kRows;
  auto* pairs = reinterpret_cast<float*>(shared_quads);
  float* rows = pairs + (kKept ? vectors * width : 0);  // [vectors, chunk]
  const T* grad = dy + r * columns;
  if (kKept) {
    for (unsigned item = threadIdx.x; item < vectors * width; item += blockDim.x) {
      pairs[item] = PairGradient(grad + dim, vectors, item / width, item % width);
    }
  }
  const unsigned quads = chunk / 4;
  for (size_t first = 0; first < dim; first += chunk) {
    __syncthreads();
    LoadVectors(in, vectors, vectors, first, chunk, chunk, aligned, rows);
    __syncthreads();
    for (unsigned item = threadIdx.x; item < row_tiles * quads; item += blockDim.x) {
      const unsigned tile = item / quads, q = item % quads;
      float sum[kRows][4] = {};
      for (unsigned j = 0; j < vectors; ++j) {
        const float4 value = *reinterpret_cast<const float4*>(rows + j * chunk + 4 * q);
        alignas(16) float factor[kRows];
        if (kKept) {
          const float* from = pairs + j * width + tile * kRows;
          *reinterpret_cast<float4*>(factor) = *reinterpret_cast<const float4*>(from);
          *reinterpret_cast<float4*>(factor + 4) = *reinterpret_cast<const float4*>(from + 4);
        } else {
#pragma unroll
          for (unsigned k = 0; k < kRows; ++k) {
            factor[k] = PairGradient(grad + dim, vectors, tile * kRows + k, j);
          }
        }
#pragma unroll
        for (unsigned k = 0; k < kRows; ++k) {
          sum[k][0] += factor[k] * value.x;
          sum[k][1] += factor[k] * value.y;
          sum[k][2] += factor[k] * value.z;
          sum[k][3] += factor[k] * value.w;
        }
      }
#pragma unroll
      for (unsigned k = 0; k < kRows; ++k) {
        const unsigned i = tile * kRows + k;
        if (i >= vectors || (i == 0 ? gradients.mlp : gradients.embedding) == nullptr) continue;
        const bool add = i == 0 ? gradients.add_mlp : gradients.add_embedding;
        const size_t c = first + 4 * q;
        if (c >= dim) continue;
#pragma unroll
        for (unsigned e = 0; e < 4; ++e) {
          if (i == 0 && c + e < dim) sum[k][e] += grad[c + e];
        }
        WriteGradient(out.at(i) + c, add, sum[k], aligned, dim - c);
      }
    }
  }
}

constexpr size_t kSharedBytes = 48 << 10;  // per block without opting in to more
// The opt-in limit on every GPU since sm_80 is at least 99 KiB (sm_86 and sm_89; sm_80: 163 KiB).
constexpr size_t kMaxSharedBytes = 96 << 10;

// The widest chunk of columns, a multiple of 4, such that fixed + rows * (chunk + extra) floats fit
// shared memory; 0 if none fits.
unsigned ChunkOf(size_t dim, size_t rows, size_t extra, size_t fixed) {
  const size_t wanted = std::max<size_t>(4, (dim + 3) / 4 * 4);
  for (const size_t limit : {kSharedBytes, kMaxSharedBytes}) {
    const size_t floats = limit / sizeof(float);
    if (floats < fixed + rows * (4 + extra)) continue;
    const size_t fits = (floats - fixed) / rows - extra;
    return static_cast<unsigned>(std::min(wanted, fits / 4 * 4));
  }
  return 0;
}

void RecordTooMany(size_t slots, Stream& stream) {
  stream.Record(absl::UnimplementedError(absl::StrCat(
      "Interaction of ", slots,
      " slots: four columns of a sample must fit a GPU's shared memory; the limit is about 3000 ",
      "slots")));
}

unsigned ThreadsFor(size_t items) {
  return static_cast<unsigned>(
      std::min<size_t>(kBlockThreads, CeilDivide(std::max<size_t>(items, 1), kWarp) * kWarp));
}

template <typename T>
void DotInteractionForwardOf(const T* mlp, const T* embedding, T* y, size_t b, size_t slots,
                             size_t dim, Stream& stream) {
  const size_t side = CeilDivide(slots + 1, kTile);
  const unsigned chunk = ChunkOf(dim, side * kTile, 4, 0);
  if (chunk == 0) return RecordTooMany(slots, stream);
  const bool aligned = dim % 4 == 0 && HoldsQuads(mlp) && HoldsQuads(embedding);
  Launch("DotInteraction", PairsKernel<T>, dim3(static_cast<unsigned>(b)),
         dim3(ThreadsFor(side * (side + 1) / 2)), side * kTile * (chunk + 4) * sizeof(float),
         stream, mlp, embedding, y, static_cast<unsigned>(slots + 1), dim,
         DotInteractionColumns(slots, dim), chunk, aligned);
}

template <typename T>
void DotInteractionBackwardOf(const T* mlp, const T* embedding, const T* dy,
                              const Gradients<T>& gradients, size_t b, size_t slots, size_t dim,
                              Stream& stream) {
  const size_t vectors = slots + 1, row_tiles = CeilDivide(vectors, kRows);
  size_t kept = vectors * row_tiles * kRows;
  unsigned chunk = ChunkOf(dim, vectors, 0, kept);
  if (chunk == 0) {
    kept = 0;
    chunk = ChunkOf(dim, vectors, 0, 0);
  }
  if (chunk == 0) return RecordTooMany(slots, stream);
  const bool aligned = dim % 4 == 0 && HoldsQuads(mlp) && HoldsQuads(embedding) &&
                       HoldsQuads(gradients.mlp) && HoldsQuads(gradients.embedding);
  Launch("DotInteractionBackward",
         kept > 0 ? DotBackwardKernel<true, T> : DotBackwardKernel<false, T>,
         dim3(static_cast<unsigned>(b)), dim3(ThreadsFor(row_tiles * (chunk / 4))),
         (kept + vectors * chunk) * sizeof(float), stream, mlp, embedding, dy, gradients,
         static_cast<unsigned>(vectors), dim, DotInteractionColumns(slots, dim), chunk, aligned);
}

}  // namespace

void DotInteraction(ConstValues mlp, ConstValues embedding, Values y, size_t b, size_t slots,
                    size_t dim, Stream& stream) {
  if (TensorInteraction(mlp, embedding, y, b, slots, dim, stream)) return;
  ForType(y.type, [&]<typename T>() {
    DotInteractionForwardOf(As<T>(mlp), As<T>(embedding), As<T>(y), b, slots, dim, stream);
  });
}

void DotInteractionBackward(ConstValues mlp, ConstValues embedding, ConstValues dy, Write mlp_write,
                            Values dmlp, Write embedding_write, Values dembedding, size_t b,
                            size_t slots, size_t dim, Stream& stream) {
  if (TensorInteractionBackward(mlp, embedding, dy, mlp_write, dmlp, embedding_write, dembedding, b,
                                slots, dim, stream)) {
    return;
  }
  ForType(dy.type, [&]<typename T>() {
    const Gradients<T> gradients = {As<T>(dmlp), As<T>(dembedding), mlp_write == Write::kAccumulate,
                                    embedding_write == Write::kAccumulate};
    DotInteractionBackwardOf(As<T>(mlp), As<T>(embedding), As<T>(dy), gradients, b, slots, dim,
                             stream);
  });
}

}  // namespace cistern::op::gpu
