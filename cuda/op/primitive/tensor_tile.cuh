// Tiles of 16 x 16 elements for products on tensor cores, with their operands in shared memory. A
// warp holds a tile. Internal to x.cu.
//
// Unlike WMMA, this states which elements a lane holds, so that a tile can be made from a formula
// and a sum can be used where it is, in registers. The layouts are those of PTX's ldmatrix and
// mma.m16n8k16; a sum is two of its results, side by side.
//
// All lanes of the warp must call the functions together. None of them orders memory: call
// __syncwarp between writing an operand and loading it.
#pragma once

#ifdef __CUDACC__

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/op/primitive/element.h"
#include "cuda/op/primitive/launch.cuh"

namespace cistern::op {

inline constexpr unsigned kTileSide = 16;

// A lane holds four pairs of elements that are neighbours in a row. Pair p is in row TileRow(p) and
// begins in column TileColumn(p).
__device__ inline unsigned TileRow(unsigned pair) {
  return threadIdx.x % kWarp / 4 + pair % 2 * 8;
}
__device__ inline unsigned TileColumn(unsigned pair) {
  return threadIdx.x % 4 * 2 + pair / 2 * 8;
}

// The address from which this lane loads a row of eight elements, for ldmatrix.x4: the quarters of
// the tile from top to bottom, then from left to right. Rows begin at multiples of 16 bytes.
template <typename T>
__device__ inline uint32_t TileAddress(const T* tile, unsigned pitch) {
  const unsigned lane = threadIdx.x % kWarp;
  return static_cast<uint32_t>(
      __cvta_generic_to_shared(tile + lane % kTileSide * pitch + lane / kTileSide * 8));
}

// The left operand of a product.
template <typename T>
struct LeftTile {
  uint32_t pairs[4];

  // from: [16, 16] in shared memory; its rows are `pitch` elements apart.
  __device__ void Load(const T* from, unsigned pitch) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(pairs[0]), "=r"(pairs[1]), "=r"(pairs[2]), "=r"(pairs[3])
                 : "r"(TileAddress(from, pitch))
                 : "memory");
  }
  // Element (row, column) = at(row, column), a T.
  template <typename At>
  __device__ void Fill(const At& at) {
#pragma unroll
    for (unsigned p = 0; p < 4; ++p) {
      const unsigned row = TileRow(p), column = TileColumn(p);
      pairs[p] = uint32_t{at(row, column).bits} | uint32_t{at(row, column + 1).bits} << 16;
    }
  }
};

// The right operand.
template <typename T>
struct RightTile {
  uint32_t pairs[4];  // of neighbours in a column; two for each half of the columns

  __device__ void Load(const T* from, unsigned pitch) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(pairs[0]), "=r"(pairs[1]), "=r"(pairs[2]), "=r"(pairs[3])
                 : "r"(TileAddress(from, pitch))
                 : "memory");
  }
  // The transpose of the tile at `from`.
  __device__ void LoadTransposed(const T* from, unsigned pitch) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(pairs[0]), "=r"(pairs[2]), "=r"(pairs[1]), "=r"(pairs[3])
                 : "r"(TileAddress(from, pitch))
                 : "memory");
  }
};

__device__ inline void MultiplyAdd(const LeftTile<Half>& left, const uint32_t* right, float* sum) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(left.pairs[0]), "r"(left.pairs[1]), "r"(left.pairs[2]), "r"(left.pairs[3]),
        "r"(right[0]), "r"(right[1]));
}
__device__ inline void MultiplyAdd(const LeftTile<Bfloat16>& left, const uint32_t* right,
                                   float* sum) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(left.pairs[0]), "r"(left.pairs[1]), "r"(left.pairs[2]), "r"(left.pairs[3]),
        "r"(right[0]), "r"(right[1]));
}

// A sum of products, in float32. Zero at first.
struct SumTile {
  float at[8] = {};

  template <typename T>
  __device__ void Add(const LeftTile<T>& left, const RightTile<T>& right) {
    MultiplyAdd(left, right.pairs, at);
    MultiplyAdd(left, right.pairs + 2, at + 4);
  }
  // Calls visit(row, column, x, y) for the pairs of this lane: elements (row, column) = x and
  // (row, column + 1) = y.
  template <typename Visit>
  __device__ void ForEachPair(const Visit& visit) const {
#pragma unroll
    for (unsigned p = 0; p < 4; ++p) visit(TileRow(p), TileColumn(p), at[2 * p], at[2 * p + 1]);
  }
};

}  // namespace cistern::op

#else
#include <emulated_tensor_tile.h>  // test/cuda/emulator
#endif
