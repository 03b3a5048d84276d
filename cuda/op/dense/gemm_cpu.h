// A product cut into blocks, each computed by one thread with a library's single-threaded routine.
// Internal to x_cpu.cc.
#pragma once

#include <bit>

#include "cuda/op/dense/gemm.h"
#include "cuda/op/primitive/cpu.h"

namespace cistern::op {

// c = A B or c += A B, as Gemm; lda, ldb, ldc: row strides in floats, as stored.
struct MatrixProduct {
  bool transpose_a, transpose_b;
  size_t m, n, k;
  const float* a;
  size_t lda;
  const float* b;
  size_t ldb;
  bool accumulate;
  float* c;
  size_t ldc;
};

// Computes all of `p` on the calling thread. m, n, k > 0. One file per library: gemm_onednn.cc,
// gemm_openblas.cc, gemm_eigen.cc; the build selects one.
void MultiplyMatrices(const MatrixProduct& p);

// The part of the product that computes rows or columns [begin, end) of c.
inline MatrixProduct RowsOf(MatrixProduct p, size_t begin, size_t end) {
  p.a += p.transpose_a ? begin : begin * p.lda;
  p.c += begin * p.ldc;
  p.m = end - begin;
  return p;
}
inline MatrixProduct ColumnsOf(MatrixProduct p, size_t begin, size_t end) {
  p.b += p.transpose_b ? begin * p.ldb : begin;
  p.c += begin;
  p.n = end - begin;
  return p;
}

// How a product is cut: along the longer side of c, into 1, 2, 4, 8 or 16 blocks of nearly equal
// size, each a multiple of 8 (the libraries' kernels) and at least 64 wide.
struct Cut {
  bool by_rows;
  size_t block;
};
inline Cut CutOf(const MatrixProduct& p) {
  constexpr size_t kMinBlock = 64, kMaxBlocks = 16, kMinWork = 64 * 64 * 64;
  const size_t side = std::max(p.m, p.n);
  const size_t work = p.m * p.n * std::max<size_t>(p.k, 1);
  const size_t wish = work < kMinWork ? 1 : std::clamp<size_t>(side / kMinBlock, 1, kMaxBlocks);
  return {p.m >= p.n, CeilDiv(CeilDiv(side, std::bit_floor(wish)), 8) * 8};
}

// Multiplies block by block; calls after(block) on each finished block while it is in cache.
template <typename After>
void MultiplyInBlocks(const MatrixProduct& p, const After& after) {
  if (p.m == 0 || p.n == 0) return;
  const Cut cut = CutOf(p);
  const size_t side = std::max(p.m, p.n), blocks = CeilDiv(side, cut.block);
  [[maybe_unused]] const int threads = blocks == 1 ? 1 : ThreadNum();
#pragma omp parallel num_threads(threads)
  {
    KeepLibrariesSingleThreaded();
#pragma omp for schedule(guided)
    for (size_t i = 0; i < blocks; ++i) {
      const size_t begin = i * cut.block, end = std::min(side, begin + cut.block);
      const MatrixProduct block = cut.by_rows ? RowsOf(p, begin, end) : ColumnsOf(p, begin, end);
      if (block.k > 0) {
        MultiplyMatrices(block);
      } else if (!block.accumulate) {
        for (size_t r = 0; r < block.m; ++r) std::fill_n(block.c + r * block.ldc, block.n, 0.0f);
      }
      after(block, cut.by_rows ? 0 : begin);
    }
  }
}

}  // namespace cistern::op
