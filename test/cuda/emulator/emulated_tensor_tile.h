// Tensor cores of the emulated GPU: what cuda/op/primitive/tensor_tile.cuh declares.
//
// Every lane holds the whole tile and computes all of it, and visits only the elements that the
// lane of a GPU holds. Nothing here synchronizes the lanes, because CUDA guarantees no memory order
// either: a missing __syncwarp produces wrong results.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "test/cuda/emulator/cuda_runtime.h"

namespace cistern::op {

inline constexpr unsigned kTileSide = 16;

inline void CheckTile(const void* tile, size_t pitch_bytes) {
  if (reinterpret_cast<uintptr_t>(tile) % 16 == 0 && pitch_bytes % 16 == 0) return;
  std::fprintf(stderr, "the rows of a tile must begin at multiples of 16 bytes: %p, pitch %zu\n",
               tile, pitch_bytes);
  std::abort();
}

struct EmulatedTile {
  float at[kTileSide][kTileSide] = {};

  template <typename At>
  void FillWith(const At& element) {
    for (unsigned i = 0; i < kTileSide; ++i) {
      for (unsigned j = 0; j < kTileSide; ++j) at[i][j] = element(i, j);
    }
  }
};

template <typename T>
struct LeftTile : EmulatedTile {
  void Load(const T* from, unsigned pitch) {
    CheckTile(from, pitch * sizeof(T));
    FillWith([=](unsigned i, unsigned j) { return float{from[i * pitch + j]}; });
  }
  template <typename At>
  void Fill(const At& element) {
    FillWith([&](unsigned i, unsigned j) { return float{element(i, j)}; });
  }
};

template <typename T>
struct RightTile : EmulatedTile {
  void Load(const T* from, unsigned pitch) {
    CheckTile(from, pitch * sizeof(T));
    FillWith([=](unsigned i, unsigned j) { return float{from[i * pitch + j]}; });
  }
  void LoadTransposed(const T* from, unsigned pitch) {
    CheckTile(from, pitch * sizeof(T));
    FillWith([=](unsigned i, unsigned j) { return float{from[j * pitch + i]}; });
  }
};

struct SumTile : EmulatedTile {
  void Add(const EmulatedTile& left, const EmulatedTile& right) {
    FillWith([&](unsigned i, unsigned j) {
      float sum = at[i][j];
      for (unsigned k = 0; k < kTileSide; ++k) sum += left.at[i][k] * right.at[k][j];
      return sum;
    });
  }
  template <typename Visit>
  void ForEachPair(const Visit& visit) const {
    const unsigned lane = emulator::Lane();
    for (unsigned p = 0; p < 4; ++p) {
      const unsigned row = lane / 4 + p % 2 * 8, column = lane % 4 * 2 + p / 2 * 8;
      visit(row, column, at[row][column], at[row][column + 1]);
    }
  }
};

}  // namespace cistern::op
