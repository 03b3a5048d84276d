// Memory traffic and FLOPs as in dot_interaction.cu; with the FLOPs on tensor cores the kernels are
// memory-bound.
//
// A warp computes one sample. Its vectors, at most 32, are in shared memory, as two tiles of 16
// rows. Forward, the products of those tiles are the pairs. Backward, the tiles of G, the symmetric
// matrix of the pairs' gradients, are in registers. G T is computed 16 columns at a time and takes
// the place of these columns of T, so that whole vectors go from shared to global memory. Sums are
// float32; G and the vectors keep their 16-bit input values, so only the result is rounded.
#include "cuda/op/dense/dot_interaction_tensor.cuh"

#include <cstdint>

#include "cuda/op/dense/dot_interaction.h"
#include "cuda/op/primitive/element.h"
#include "cuda/op/primitive/launch.cuh"
#include "cuda/op/primitive/pack.cuh"
#include "cuda/op/primitive/tensor_tile.cuh"

namespace cistern::op::gpu {
namespace {

constexpr unsigned kVectors = 2 * kTileSide;  // per sample, at most
constexpr unsigned kOctet = 8;                // elements that one load or store moves
using Octet = Words<4>;

// The distance of two vectors in shared memory, in elements. Eight elements of padding put
// neighbouring vectors into different banks.
__host__ __device__ inline unsigned VectorPitch(unsigned dim) {
  return dim + kOctet;
}
// A warp's shared memory: the vectors, then a row of y or dy.
__host__ __device__ inline unsigned VectorOctets(unsigned dim) {
  return kVectors * VectorPitch(dim) / kOctet;
}
__host__ __device__ inline unsigned WarpOctets(unsigned dim, unsigned columns) {
  return VectorOctets(dim) + static_cast<unsigned>(CeilDivide(columns, kOctet));
}

// The octets of a sample's vectors, shared out among the lanes of a warp: a lane begins at
// `lane` and advances by the size of the warp.
struct OctetPlace {
  unsigned vector, octet;

  __device__ OctetPlace(unsigned lane, unsigned octets)
      : vector(lane / octets), octet(lane % octets) {}
  __device__ void Advance(unsigned octets) {
    vector += kWarp / octets;
    octet += kWarp % octets;
    if (octet < octets) return;
    octet -= octets;
    ++vector;
  }
};

// Loads [mlp; embedding] of a sample to `to`. A lane has up to eight loads in flight.
template <typename T>
__device__ inline void LoadVectors(const T* mlp, const T* embedding, unsigned vectors, unsigned dim,
                                   unsigned lane, T* to) {
  constexpr unsigned kUnderWay = 8;
  const unsigned octets = dim / kOctet;
  OctetPlace at(lane, octets);
  while (at.vector < vectors) {
    Octet held[kUnderWay];
    unsigned place[kUnderWay];
#pragma unroll
    for (unsigned k = 0; k < kUnderWay; ++k) {
      place[k] = at.vector < vectors ? at.vector * VectorPitch(dim) + at.octet * kOctet : ~0u;
      if (at.vector < vectors) {
        const T* from = at.vector == 0 ? mlp : embedding + size_t{at.vector - 1} * dim;
        held[k] = *reinterpret_cast<const Octet*>(from + at.octet * kOctet);
      }
      at.Advance(octets);
    }
#pragma unroll
    for (unsigned k = 0; k < kUnderWay; ++k) {
      if (place[k] != ~0u) *reinterpret_cast<Octet*>(to + place[k]) = held[k];
    }
  }
}

// Stores the vectors at `from` to mlp and embedding; either may be null.
template <typename T>
__device__ inline void StoreVectors(const T* from, unsigned vectors, unsigned dim, unsigned lane,
                                    T* mlp, T* embedding) {
  const unsigned octets = dim / kOctet;
#pragma unroll 4
  for (OctetPlace at(lane, octets); at.vector < vectors; at.Advance(octets)) {
    T* to = at.vector == 0 ? mlp : embedding;
    if (to == nullptr) continue;
    if (at.vector > 0) to += size_t{at.vector - 1} * dim;
    const unsigned place = at.vector * VectorPitch(dim) + at.octet * kOctet;
    StoreWords(*reinterpret_cast<const Octet*>(from + place), to + at.octet * kOctet);
  }
}

// Copies `count` elements, eight at a time if `wide`.
template <typename T>
__device__ inline void CopyRow(const T* from, T* to, unsigned count, bool wide, unsigned lane) {
  const unsigned octets = wide ? count / kOctet : 0;
  for (unsigned q = lane; q < octets; q += kWarp) {
    reinterpret_cast<Octet*>(to)[q] = reinterpret_cast<const Octet*>(from)[q];
  }
  for (unsigned c = octets * kOctet + lane; c < count; c += kWarp) to[c] = from[c];
}

// The place of the pair of vectors i > j among all pairs.
__device__ inline unsigned PairIndex(unsigned i, unsigned j) {
  return i * (i - 1) / 2 + j;
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    TensorPairsKernel(const T* mlp, const T* embedding, T* y, size_t b, unsigned vectors,
                      unsigned dim, unsigned columns, bool wide) {
  CISTERN_DYNAMIC_SHARED(Octet, shared);
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const size_t r = size_t{blockIdx.x} * (blockDim.x / kWarp) + warp;
  if (r >= b) return;
  Octet* own = shared + warp * WarpOctets(dim, columns);
  T* rows = reinterpret_cast<T*>(own);
  T* row = reinterpret_cast<T*>(own + VectorOctets(dim));
  const unsigned pitch = VectorPitch(dim);

  LoadVectors(mlp + r * dim, embedding + r * (vectors - 1) * dim, vectors, dim, lane, rows);
  __syncwarp();
  CopyRow(rows, row, dim, true, lane);
  SumTile dots[3];  // of the vectors (0, 0), (16, 0), (16, 16) and their successors
  for (unsigned c = 0; c < dim; c += kTileSide) {
    LeftTile<T> left;
    RightTile<T> upper, lower;
    left.Load(rows + c, pitch);
    upper.LoadTransposed(rows + c, pitch);
    dots[0].Add(left, upper);
    if (vectors <= kTileSide) continue;
    left.Load(rows + kTileSide * pitch + c, pitch);
    lower.LoadTransposed(rows + kTileSide * pitch + c, pitch);
    dots[1].Add(left, upper);
    dots[2].Add(left, lower);
  }
#pragma unroll
  for (unsigned k = 0; k < 3; ++k) {
    const unsigned first_i = k == 0 ? 0 : kTileSide, first_j = k == 2 ? kTileSide : 0;
    dots[k].ForEachPair([&](unsigned at_i, unsigned at_j, float dot, float next) {
      const unsigned i = first_i + at_i, j = first_j + at_j;
      if (i >= vectors) return;
      if (j < i) row[dim + PairIndex(i, j)] = dot;
      if (j + 1 < i) row[dim + PairIndex(i, j + 1)] = next;
    });
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

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    TensorBackwardKernel(const T* mlp, const T* embedding, const T* dy, Gradients<T> gradients,
                         size_t b, unsigned vectors, unsigned dim, unsigned columns, bool wide) {
  CISTERN_DYNAMIC_SHARED(Octet, shared);
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const size_t r = size_t{blockIdx.x} * (blockDim.x / kWarp) + warp;
  if (r >= b) return;
  Octet* own = shared + warp * WarpOctets(dim, columns);
  T* rows = reinterpret_cast<T*>(own);
  T* row = reinterpret_cast<T*>(own + VectorOctets(dim));
  const unsigned pitch = VectorPitch(dim);

  CopyRow(dy + r * columns, row, columns, wide, lane);
  LoadVectors(mlp + r * dim, embedding + r * (vectors - 1) * dim, vectors, dim, lane, rows);
  for (unsigned q = vectors * pitch / kOctet + lane; q < VectorOctets(dim); q += kWarp) {
    own[q] = Octet{};
  }
  __syncwarp();

  // G, zero on the diagonal and beyond the last vector.
  LeftTile<T> factors[2][2];
#pragma unroll
  for (unsigned k = 0; k < 4; ++k) {
    factors[k / 2][k % 2].Fill([&](unsigned at_i, unsigned at_j) {
      const unsigned i = k / 2 * kTileSide + at_i, j = k % 2 * kTileSide + at_j;
      const unsigned later = i > j ? i : j, earlier = i > j ? j : i;
      if (later == earlier || later >= vectors) return T(0.0f);
      return row[dim + PairIndex(later, earlier)];
    });
  }
  T* const dmlp = gradients.mlp == nullptr ? nullptr : gradients.mlp + r * dim;
  T* const dembedding =
      gradients.embedding == nullptr ? nullptr : gradients.embedding + r * (vectors - 1) * dim;
  for (unsigned c = 0; c < dim; c += kTileSide) {
    RightTile<T> upper, lower;
    upper.Load(rows + c, pitch);
    lower.Load(rows + kTileSide * pitch + c, pitch);
    __syncwarp();  // the gradients take the place of these columns
#pragma unroll
    for (unsigned k = 0; k < 2; ++k) {
      SumTile sums;
      sums.Add(factors[k][0], upper);
      sums.Add(factors[k][1], lower);
      sums.ForEachPair([&](unsigned at_i, unsigned at_c, float x, float next) {
        const unsigned i = k * kTileSide + at_i, column = c + at_c;
        if (i >= vectors) return;
        if (i == 0) {
          x += row[column];
          next += row[column + 1];
        }
        const T* before = nullptr;
        if (i == 0 && gradients.add_mlp && dmlp != nullptr) before = dmlp;
        if (i > 0 && gradients.add_embedding && dembedding != nullptr) {
          before = dembedding + size_t{i - 1} * dim;
        }
        Pack<T, 2> made;
        if (before != nullptr) {
          const auto added = Pack<T, 2>::Load(before + column);
          x += added[0];
          next += added[1];
        }
        made.Set(0, x);
        made.Set(1, next);
        *reinterpret_cast<Words<1>*>(rows + i * pitch + column) = made.words;
      });
    }
  }
  __syncwarp();
  StoreVectors(rows, vectors, dim, lane, dmlp, dembedding);
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
Plan PlanOf(ElementType type, size_t slots, size_t dim) {
  if (type == ElementType::kFloat || slots + 1 > kVectors || dim == 0 || dim % kTileSide != 0) {
    return {};
  }
  if (dim > 1024) return {};
  const auto d = static_cast<unsigned>(dim);
  const auto columns = static_cast<unsigned>(DotInteractionColumns(slots, dim));
  const auto bytes = static_cast<unsigned>(WarpOctets(d, columns) * sizeof(Octet));
  const unsigned warps = WarpsOf(bytes);
  return {static_cast<unsigned>(slots + 1), d, columns, warps, warps * bytes};
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
  const Plan plan = PlanOf(y.type, slots, dim);
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
  const Plan plan = PlanOf(dy.type, slots, dim);
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
