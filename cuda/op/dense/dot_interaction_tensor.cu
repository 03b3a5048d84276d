// Memory traffic and FLOPs as in dot_interaction.cu; with the FLOPs on tensor cores the kernels are
// memory-bound.
//
// A warp computes one sample. Its vectors, at most 32, are in shared memory, as two tiles of 16
// rows. Forward, the products of those tiles are the pairs. Backward, the symmetric matrix G of the
// pairs' gradients is in shared memory too, and G T is computed 16 columns at a time. Sums are
// float32; G and the vectors keep their 16-bit input values, so only the result is rounded.
#include "cuda/op/dense/dot_interaction_tensor.cuh"

#include <mma.h>

#include <cstdint>

#include "cuda/op/dense/dot_interaction.h"
#include "cuda/op/primitive/element.h"
#include "cuda/op/primitive/launch.cuh"

namespace cistern::op::gpu {
namespace {

namespace wmma = nvcuda::wmma;

constexpr unsigned kSide = 16;     // rows and columns of a tile
constexpr unsigned kVectors = 32;  // per sample, at most
constexpr unsigned kOctet = 8;     // elements that one load or store moves: 16 bytes
// Row pitches in shared memory have 8 elements, or 4 floats, of padding, so that neighbouring rows
// are in different banks.
constexpr unsigned kTilePitch = kSide + 4;     // in floats
constexpr unsigned kPairPitch = kVectors + 8;  // in elements of G
__host__ __device__ inline unsigned VectorPitch(unsigned dim) {
  return dim + 8;
}

template <typename T>
struct TensorElement;
template <>
struct TensorElement<Half> {
  using type = __half;
};
template <>
struct TensorElement<Bfloat16> {
  using type = __nv_bfloat16;
};
template <typename T>
using TensorOf = typename TensorElement<T>::type;

template <typename T>
using Left = wmma::fragment<wmma::matrix_a, 16, 16, 16, TensorOf<T>, wmma::row_major>;
template <typename T, typename Layout>
using Right = wmma::fragment<wmma::matrix_b, 16, 16, 16, TensorOf<T>, Layout>;
using Sums = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

struct alignas(32) TileRow {
  float at[8];
};
template <typename T>
struct alignas(16) Octet {
  T at[kOctet];
};

template <typename Fragment, typename T>
__device__ inline void LoadTile(Fragment& tile, const T* from, unsigned pitch) {
  wmma::load_matrix_sync(tile, reinterpret_cast<const TensorOf<T>*>(from), pitch);
}

// The layout of a warp's shared memory, as byte offsets. Every part is 32-byte aligned, as WMMA
// tiles require.
struct WarpMemory {
  unsigned vectors, row, pairs, tiles, size;
};
__host__ __device__ inline unsigned RoundedTo32(unsigned bytes) {
  return (bytes + 31) / 32 * 32;
}
// Forward, the result tiles overwrite the vectors. row: one row of y or dy.
__host__ __device__ inline WarpMemory MemoryOf(bool backward, unsigned dim, unsigned columns) {
  const unsigned vectors = kVectors * VectorPitch(dim) * 2, row = RoundedTo32(columns * 2);
  const unsigned tile = kSide * kTilePitch * 4, pairs = kVectors * kPairPitch * 2;
  if (backward) {
    return {0, vectors, vectors + row, vectors + row + pairs, vectors + row + pairs + 2 * tile};
  }
  const unsigned wider = vectors > 3 * tile ? vectors : 3 * tile;
  return {0, wider, 0, 0, wider + row};
}

// Loads [mlp; embedding] of a sample to `to`, row by row. A lane has up to eight loads in flight.
template <typename T>
__device__ inline void LoadVectors(const T* mlp, const T* embedding, unsigned vectors, unsigned dim,
                                   unsigned lane, T* to) {
  constexpr unsigned kUnderWay = 8;
  const unsigned octets = dim / kOctet, step_rows = kWarp / octets, step = kWarp % octets;
  unsigned i = lane / octets, q = lane % octets;
  while (i < vectors) {
    Octet<T> held[kUnderWay];
    unsigned place[kUnderWay];
#pragma unroll
    for (unsigned k = 0; k < kUnderWay; ++k) {
      place[k] = i < vectors ? i * VectorPitch(dim) + q * kOctet : ~0u;
      if (i < vectors) {
        const T* from = i == 0 ? mlp : embedding + size_t{i - 1} * dim;
        held[k] = *reinterpret_cast<const Octet<T>*>(from + q * kOctet);
      }
      i += step_rows;
      q += step;
      if (q >= octets) {
        q -= octets;
        ++i;
      }
    }
#pragma unroll
    for (unsigned k = 0; k < kUnderWay; ++k) {
      if (place[k] != ~0u) *reinterpret_cast<Octet<T>*>(to + place[k]) = held[k];
    }
  }
}

// Copies `count` elements, eight at a time if `wide`.
template <typename T>
__device__ inline void CopyRow(const T* from, T* to, unsigned count, bool wide, unsigned lane) {
  const unsigned octets = wide ? count / kOctet : 0;
  for (unsigned q = lane; q < octets; q += kWarp) {
    reinterpret_cast<Octet<T>*>(to)[q] = reinterpret_cast<const Octet<T>*>(from)[q];
  }
  for (unsigned c = octets * kOctet + lane; c < count; c += kWarp) to[c] = from[c];
}

__device__ inline void StoreTile(float* to, const Sums& tile) {
  wmma::store_matrix_sync(to, tile, kTilePitch, wmma::mem_row_major);
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    TensorPairsKernel(const T* mlp, const T* embedding, T* y, size_t b, unsigned vectors,
                      unsigned dim, unsigned columns, bool wide) {
  CISTERN_DYNAMIC_SHARED(TileRow, shared);
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const size_t r = size_t{blockIdx.x} * (blockDim.x / kWarp) + warp;
  if (r >= b) return;
  const WarpMemory memory = MemoryOf(/*backward=*/false, dim, columns);
  char* own = reinterpret_cast<char*>(shared) + warp * memory.size;
  T* rows = reinterpret_cast<T*>(own + memory.vectors);
  T* row = reinterpret_cast<T*>(own + memory.row);
  auto* tiles = reinterpret_cast<float*>(own + memory.tiles);
  const unsigned pitch = VectorPitch(dim);

  LoadVectors(mlp + r * dim, embedding + r * (vectors - 1) * dim, vectors, dim, lane, rows);
  __syncwarp();
  CopyRow(rows, row, dim, true, lane);
  Sums dots[3];  // tiles (0, 0), (1, 0), (1, 1)
#pragma unroll
  for (Sums& dot : dots) wmma::fill_fragment(dot, 0.0f);
  for (unsigned c = 0; c < dim; c += kSide) {
    Left<T> left;
    Right<T, wmma::col_major> upper, lower;
    LoadTile(left, rows + c, pitch);
    LoadTile(upper, rows + c, pitch);
    wmma::mma_sync(dots[0], left, upper, dots[0]);
    if (vectors <= kSide) continue;
    LoadTile(left, rows + kSide * pitch + c, pitch);
    LoadTile(lower, rows + kSide * pitch + c, pitch);
    wmma::mma_sync(dots[1], left, upper, dots[1]);
    wmma::mma_sync(dots[2], left, lower, dots[2]);
  }
  __syncwarp();
#pragma unroll
  for (unsigned k = 0; k < 3; ++k) StoreTile(tiles + k * kSide * kTilePitch, dots[k]);
  __syncwarp();

  unsigned at = dim;  // index of pair (i, 0) in y
  for (unsigned i = 1; i < vectors; at += i++) {
    if (lane >= i) continue;
    const unsigned tile = i < kSide ? 0 : lane < kSide ? 1 : 2;
    row[at + lane] = tiles[(tile * kSide + i % kSide) * kTilePitch + lane % kSide];
  }
  if (lane == 0) row[columns - 1] = 0.0f;
  __syncwarp();
  CopyRow(row, y + r * columns, columns, wide, lane);
}

// The destination of the gradients.
template <typename T>
struct Gradients {
  T *mlp, *embedding;  // may be null
  bool add_mlp, add_embedding;
};

// Writes 16 columns of a gradient from the floats at `from`, plus `more` unless it is null.
template <typename T>
__device__ inline void WriteColumns(const float* from, const T* more, bool accumulate, T* to) {
#pragma unroll
  for (unsigned half = 0; half < kSide; half += kOctet) {
    float sum[kOctet];
#pragma unroll
    for (unsigned k = 0; k < kOctet; k += 4) {
      const float4 four = *reinterpret_cast<const float4*>(from + half + k);
      sum[k] = four.x;
      sum[k + 1] = four.y;
      sum[k + 2] = four.z;
      sum[k + 3] = four.w;
    }
    if (more != nullptr) {
      const Octet<T> added = *reinterpret_cast<const Octet<T>*>(more + half);
#pragma unroll
      for (unsigned k = 0; k < kOctet; ++k) sum[k] += added.at[k];
    }
    auto* place = reinterpret_cast<Octet<T>*>(to + half);
    if (accumulate) {
      const Octet<T> before = *place;
#pragma unroll
      for (unsigned k = 0; k < kOctet; ++k) sum[k] += before.at[k];
    }
    Octet<T> made;
#pragma unroll
    for (unsigned k = 0; k < kOctet; ++k) made.at[k] = sum[k];
    *place = made;
  }
}

// The pairs' gradients as a symmetric matrix, zero on the diagonal and beyond the last vector.
template <typename T>
__device__ inline void MakePairMatrix(const T* pairs, unsigned vectors, unsigned lane, T* to) {
  Octet<T> zeros;
#pragma unroll
  for (unsigned k = 0; k < kOctet; ++k) zeros.at[k] = 0.0f;
  for (unsigned q = lane; q < kVectors * kPairPitch / kOctet; q += kWarp) {
    reinterpret_cast<Octet<T>*>(to)[q] = zeros;
  }
  __syncwarp();
  for (unsigned i = 1; i < vectors; pairs += i++) {
    if (lane >= i) continue;
    to[i * kPairPitch + lane] = pairs[lane];
    to[lane * kPairPitch + i] = pairs[lane];
  }
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    TensorBackwardKernel(const T* mlp, const T* embedding, const T* dy, Gradients<T> gradients,
                         size_t b, unsigned vectors, unsigned dim, unsigned columns, bool wide) {
  CISTERN_DYNAMIC_SHARED(TileRow, shared);
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const size_t r = size_t{blockIdx.x} * (blockDim.x / kWarp) + warp;
  if (r >= b) return;
  const WarpMemory memory = MemoryOf(/*backward=*/true, dim, columns);
  char* own = reinterpret_cast<char*>(shared) + warp * memory.size;
  T* rows = reinterpret_cast<T*>(own + memory.vectors);
  T* row = reinterpret_cast<T*>(own + memory.row);
  T* pairs = reinterpret_cast<T*>(own + memory.pairs);
  auto* tiles = reinterpret_cast<float*>(own + memory.tiles);
  const unsigned pitch = VectorPitch(dim);

  CopyRow(dy + r * columns, row, columns, wide, lane);
  LoadVectors(mlp + r * dim, embedding + r * (vectors - 1) * dim, vectors, dim, lane, rows);
  for (unsigned at = vectors * pitch + lane; at < kVectors * pitch; at += kWarp) rows[at] = 0.0f;
  __syncwarp();
  MakePairMatrix(row + dim, vectors, lane, pairs);
  __syncwarp();

  Left<T> factors[2][2];
#pragma unroll
  for (unsigned i = 0; i < 2; ++i) {
#pragma unroll
    for (unsigned j = 0; j < 2; ++j) {
      LoadTile(factors[i][j], pairs + i * kSide * kPairPitch + j * kSide, kPairPitch);
    }
  }
  const bool is_mlp = lane == 0;
  T* to = is_mlp ? gradients.mlp : gradients.embedding;
  if (lane >= vectors) to = nullptr;
  if (to != nullptr) to += is_mlp ? r * dim : (r * (vectors - 1) + lane - 1) * dim;
  const bool add = is_mlp ? gradients.add_mlp : gradients.add_embedding;
  for (unsigned c = 0; c < dim; c += kSide) {
    Right<T, wmma::row_major> upper, lower;
    LoadTile(upper, rows + c, pitch);
    LoadTile(lower, rows + kSide * pitch + c, pitch);
#pragma unroll
    for (unsigned i = 0; i < 2; ++i) {
      Sums sums;
      wmma::fill_fragment(sums, 0.0f);
      wmma::mma_sync(sums, factors[i][0], upper, sums);
      wmma::mma_sync(sums, factors[i][1], lower, sums);
      StoreTile(tiles + i * kSide * kTilePitch, sums);
    }
    __syncwarp();
    if (to != nullptr) {
      const T* more = is_mlp ? row + c : nullptr;
      WriteColumns(tiles + lane * kTilePitch, more, add, to + c);
    }
    __syncwarp();
  }
}

bool HoldsOctets(const void* x) {
  return reinterpret_cast<uintptr_t>(x) % 16 == 0;
}

// The number of warps per block, 0 if the memory of one does not fit. Up to four warps share
// 48 KiB, the limit without opt-in, which allows five resident blocks per multiprocessor at dim
// 128.
unsigned WarpsOf(unsigned bytes) {
  constexpr unsigned kWithoutAsking = 48 << 10, kMost = 96 << 10;
  for (const unsigned warps : {4u, 2u, 1u}) {
    if (warps * bytes <= kWithoutAsking) return warps;
  }
  return bytes <= kMost ? 1 : 0;
}

// The launch parameters that follow from the shapes, for both directions.
struct Plan {
  unsigned vectors, dim, columns, warps, bytes;
};
Plan PlanOf(bool backward, ElementType type, size_t slots, size_t dim) {
  if (type == ElementType::kFloat || slots + 1 > kVectors || dim == 0 || dim % kSide != 0) {
    return {};
  }
  if (dim > 1024) return {};
  const auto d = static_cast<unsigned>(dim);
  const auto columns = static_cast<unsigned>(DotInteractionColumns(slots, dim));
  const WarpMemory memory = MemoryOf(backward, d, columns);
  const unsigned warps = WarpsOf(memory.size);
  return {static_cast<unsigned>(slots + 1), d, columns, warps, warps * memory.size};
}

// Dispatch on 16-bit types only.
template <typename Body>
void ForHalfType(ElementType type, const Body& body) {
  if (type == ElementType::kHalf) return body.template operator()<Half>();
  body.template operator()<Bfloat16>();
}

}  // namespace

bool TensorInteraction(ConstValues mlp, ConstValues embedding, Values y, size_t b, size_t slots,
                       size_t dim, Stream& stream) {
  const Plan plan = PlanOf(/*backward=*/false, y.type, slots, dim);
  if (plan.warps == 0 || !HoldsOctets(mlp.data) || !HoldsOctets(embedding.data)) return false;
  const bool wide = plan.columns % kOctet == 0 && HoldsOctets(y.data);
  ForHalfType(y.type, [&]<typename T>() {
    Launch("DotInteraction", TensorPairsKernel<T>,
           dim3(static_cast<unsigned>(CeilDivide(b, plan.warps))), dim3(plan.warps * kWarp),
           plan.bytes, stream, As<T>(mlp), As<T>(embedding), As<T>(y), b, plan.vectors, plan.dim,
           plan.columns, wide);
  });
  return true;
}

bool TensorInteractionBackward(ConstValues mlp, ConstValues embedding, ConstValues dy,
                               Write mlp_write, Values dmlp, Write embedding_write,
                               Values dembedding, size_t b, size_t slots, size_t dim,
                               Stream& stream) {
  const Plan plan = PlanOf(/*backward=*/true, dy.type, slots, dim);
  if (plan.warps == 0) return false;
  for (const void* x : {mlp.data, embedding.data, static_cast<const void*>(dmlp.data),
                        static_cast<const void*>(dembedding.data)}) {
    if (!HoldsOctets(x)) return false;
  }
  const bool wide = plan.columns % kOctet == 0 && HoldsOctets(dy.data);
  ForHalfType(dy.type, [&]<typename T>() {
    const Gradients<T> gradients = {As<T>(dmlp), As<T>(dembedding), mlp_write == Write::kAccumulate,
                                    embedding_write == Write::kAccumulate};
    Launch("DotInteractionBackward", TensorBackwardKernel<T>,
           dim3(static_cast<unsigned>(CeilDivide(b, plan.warps))), dim3(plan.warps * kWarp),
           plan.bytes, stream, As<T>(mlp), As<T>(embedding), As<T>(dy), gradients, b, plan.vectors,
           plan.dim, plan.columns, wide);
  });
  return true;
}

}  // namespace cistern::op::gpu
