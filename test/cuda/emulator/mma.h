// Tensor cores of the emulated GPU: the subset of CUDA's <mma.h> that the kernels use. It replaces
// the toolkit's header of this name.
//
// Every lane holds the whole matrix of a fragment and computes all of it. Nothing here synchronizes
// the lanes, because CUDA guarantees no memory order either: a missing __syncwarp produces wrong
// results.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "common/base/half.h"

struct __half {
  cistern::HalfBits bits;
  float value() const { return cistern::HalfToFloat(bits); }
};
struct __nv_bfloat16 {
  cistern::HalfBits bits;
  float value() const { return cistern::Bfloat16ToFloat(bits); }
};

namespace nvcuda::wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };

template <typename Use, int m, int n, int k, typename T, typename Layout = void>
struct fragment {
  static_assert(m == 16 && n == 16 && k == 16);
  float at[16][16];
};

template <typename T>
void CheckPlace(const T* place, unsigned pitch) {
  if (reinterpret_cast<uintptr_t>(place) % 32 == 0 && pitch * sizeof(T) % 16 == 0) return;
  std::fprintf(stderr, "a tensor core tile must be 32-byte aligned, but begins at %p, ",
               static_cast<const void*>(place));
  std::fprintf(stderr, "and its row pitch must be a multiple of 16 bytes, but is %zu\n",
               pitch * sizeof(T));
  std::abort();
}

template <typename Fragment>
void fill_fragment(Fragment& fragment, float value) {
  for (auto& row : fragment.at) {
    for (float& x : row) x = value;
  }
}

template <typename Use, typename T>
void load_matrix_sync(fragment<Use, 16, 16, 16, T, row_major>& to, const T* from, unsigned pitch) {
  CheckPlace(from, pitch);
  for (unsigned i = 0; i < 16; ++i) {
    for (unsigned j = 0; j < 16; ++j) to.at[i][j] = from[i * pitch + j].value();
  }
}
template <typename Use, typename T>
void load_matrix_sync(fragment<Use, 16, 16, 16, T, col_major>& to, const T* from, unsigned pitch) {
  CheckPlace(from, pitch);
  for (unsigned i = 0; i < 16; ++i) {
    for (unsigned j = 0; j < 16; ++j) to.at[i][j] = from[j * pitch + i].value();
  }
}

inline void store_matrix_sync(float* to, const fragment<accumulator, 16, 16, 16, float>& from,
                              unsigned pitch, layout_t layout) {
  CheckPlace(to, pitch);
  for (unsigned i = 0; i < 16; ++i) {
    for (unsigned j = 0; j < 16; ++j) {
      to[layout == mem_row_major ? i * pitch + j : j * pitch + i] = from.at[i][j];
    }
  }
}

template <typename A, typename B, typename C>
void mma_sync(C& to, const A& a, const B& b, const C& c) {
  C made;
  for (unsigned i = 0; i < 16; ++i) {
    for (unsigned j = 0; j < 16; ++j) {
      float sum = c.at[i][j];
      for (unsigned k = 0; k < 16; ++k) sum += a.at[i][k] * b.at[k][j];
      made.at[i][j] = sum;
    }
  }
  to = made;
}

}  // namespace nvcuda::wmma
