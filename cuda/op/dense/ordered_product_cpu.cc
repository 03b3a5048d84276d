#include "cuda/op/dense/ordered_product_cpu.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#define CISTERN_ORDERED_AVX2 1
#endif

#include "cuda/op/primitive/cpu.h"

namespace cistern::op {
namespace {

constexpr size_t kPanel = 16;  // columns that a tile computes
constexpr size_t kTileRows = 6;
constexpr size_t kDepth = 512;     // of a panel: 32 KiB, which the first-level cache holds
constexpr size_t kBlockRows = 96;  // rows of x that a panel is used for, in the second level
constexpr size_t kFewRows = 3;     // up to here, packing the weights costs more than it saves

#ifdef CISTERN_ORDERED_AVX2

// Rows of one tile: y(r, 0..15) += x(r, 0..depth) * panel, in the order of the depth.
template <size_t R>
void Tile(const float* x, size_t ldx, const float* panel, size_t depth, float* y, size_t ldy) {
  __m256 sum[R][2];
  for (size_t r = 0; r < R; ++r) {
    sum[r][0] = _mm256_loadu_ps(y + r * ldy);
    sum[r][1] = _mm256_loadu_ps(y + r * ldy + 8);
  }
  for (size_t i = 0; i < depth; ++i) {
    const __m256 w0 = _mm256_loadu_ps(panel + i * kPanel);
    const __m256 w1 = _mm256_loadu_ps(panel + i * kPanel + 8);
    for (size_t r = 0; r < R; ++r) {
      const __m256 factor = _mm256_broadcast_ss(x + r * ldx + i);
      sum[r][0] = _mm256_fmadd_ps(factor, w0, sum[r][0]);
      sum[r][1] = _mm256_fmadd_ps(factor, w1, sum[r][1]);
    }
  }
  for (size_t r = 0; r < R; ++r) {
    _mm256_storeu_ps(y + r * ldy, sum[r][0]);
    _mm256_storeu_ps(y + r * ldy + 8, sum[r][1]);
  }
}

// V vectors of 8 columns of one row: y += x * weight.
template <size_t V>
void RowTile(const float* x, const float* weight, size_t k, size_t n, float* y) {
  __m256 sum[V];
  for (size_t v = 0; v < V; ++v) sum[v] = _mm256_setzero_ps();
  for (size_t i = 0; i < k; ++i) {
    const __m256 factor = _mm256_broadcast_ss(x + i);
    for (size_t v = 0; v < V; ++v) {
      sum[v] = _mm256_fmadd_ps(factor, _mm256_loadu_ps(weight + i * n + 8 * v), sum[v]);
    }
  }
  for (size_t v = 0; v < V; ++v) _mm256_storeu_ps(y + 8 * v, sum[v]);
}

#else

template <size_t R>
void Tile(const float* x, size_t ldx, const float* panel, size_t depth, float* y, size_t ldy) {
  for (size_t r = 0; r < R; ++r) {
    for (size_t i = 0; i < depth; ++i) {
      for (size_t c = 0; c < kPanel; ++c) {
        y[r * ldy + c] = std::fma(x[r * ldx + i], panel[i * kPanel + c], y[r * ldy + c]);
      }
    }
  }
}

template <size_t V>
void RowTile(const float* x, const float* weight, size_t k, size_t n, float* y) {
  std::fill_n(y, 8 * V, 0.0f);
  for (size_t i = 0; i < k; ++i) {
    for (size_t c = 0; c < 8 * V; ++c) y[c] = std::fma(x[i], weight[i * n + c], y[c]);
  }
}

#endif

void TileOf(size_t rows, const float* x, size_t ldx, const float* panel, size_t depth, float* y,
            size_t ldy) {
  switch (rows) {
    case 1:
      return Tile<1>(x, ldx, panel, depth, y, ldy);
    case 2:
      return Tile<2>(x, ldx, panel, depth, y, ldy);
    case 3:
      return Tile<3>(x, ldx, panel, depth, y, ldy);
    case 4:
      return Tile<4>(x, ldx, panel, depth, y, ldy);
    case 5:
      return Tile<5>(x, ldx, panel, depth, y, ldy);
    default:
      return Tile<kTileRows>(x, ldx, panel, depth, y, ldy);
  }
}

// Columns [first, first + kPanel) of `rows` rows of x.
void Panel(const float* x, const float* weight, size_t rows, size_t k, size_t n, size_t first,
           float* y) {
  alignas(32) float panel[kDepth * kPanel];
  alignas(32) float tile[kTileRows * kPanel];
  const size_t width = std::min(kPanel, n - first);
  for (size_t r = 0; r < rows; ++r) std::fill_n(y + r * n + first, width, 0.0f);
  for (size_t begin = 0; begin < k; begin += kDepth) {
    const size_t depth = std::min(kDepth, k - begin);
    for (size_t i = 0; i < depth; ++i) {
      const float* const from = weight + (begin + i) * n + first;
      std::copy_n(from, width, panel + i * kPanel);
      std::fill_n(panel + i * kPanel + width, kPanel - width, 0.0f);
    }
    for (size_t r = 0; r < rows; r += kTileRows) {
      const size_t count = std::min(kTileRows, rows - r);
      float* const out = y + r * n + first;
      if (width == kPanel) {
        TileOf(count, x + r * k + begin, k, panel, depth, out, n);
        continue;
      }
      for (size_t i = 0; i < count; ++i) std::copy_n(out + i * n, width, tile + i * kPanel);
      TileOf(count, x + r * k + begin, k, panel, depth, tile, kPanel);
      for (size_t i = 0; i < count; ++i) std::copy_n(tile + i * kPanel, width, out + i * n);
    }
  }
}

// Columns [begin, end) of one row, straight from the weights.
void Row(const float* x, const float* weight, size_t k, size_t n, size_t begin, size_t end,
         float* y) {
  size_t c = begin;
  for (; c + 64 <= end; c += 64) RowTile<8>(x, weight + c, k, n, y + c);
  for (; c + 8 <= end; c += 8) RowTile<1>(x, weight + c, k, n, y + c);
  for (; c < end; ++c) {
    float sum = 0.0f;
    for (size_t i = 0; i < k; ++i) sum = std::fma(x[i], weight[i * n + c], sum);
    y[c] = sum;
  }
}

}  // namespace

void OrderedProduct(const float* x, const float* weight, size_t b, size_t k, size_t n, float* y) {
  if (b <= kFewRows) {
    constexpr size_t kColumns = 256;
    ForPieces(n, kColumns, k * n, [=](size_t begin, size_t end) {
      for (size_t r = 0; r < b; ++r) Row(x + r * k, weight, k, n, begin, end, y + r * n);
    });
    return;
  }
  const size_t blocks = CeilDiv(b, kBlockRows), panels = CeilDiv(n, kPanel);
  ForPieces(blocks * panels, 1, b * n + k * n, [=](size_t task, size_t) {
    const size_t row = task / panels * kBlockRows;
    Panel(x + row * k, weight, std::min(kBlockRows, b - row), k, n, task % panels * kPanel,
          y + row * n);
  });
}

}  // namespace cistern::op
