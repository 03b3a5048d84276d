#include "cuda/op/dense/ordered_product_cpu.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#define CISTERN_ORDERED_AVX2 1
#endif

#include "cuda/op/dense/packed_weights.h"
#include "cuda/op/primitive/cpu.h"

namespace cistern::op {
namespace {

constexpr size_t kDepth =
    512;  // of a panel of weights, which the first- or second-level cache holds
constexpr size_t kBlockRows = 240;  // rows of x that a panel is used for, in the second level
constexpr size_t kFewRows = 3;      // up to here, packing the weights costs more than it saves

// A kernel computes tiles of kRows rows and kColumns columns. All kernels give the same bits: each
// element is one chain of fused multiply-adds, whatever the width of a vector.
//
//   Tile<R>(x, ldx, panel, depth, add, y, ldy)
//       y(r, 0 .. kColumns) = (add ? the same : 0) + x(r, 0 .. depth) * panel, of R rows
//   RowTile(x, weight, k, n, y)   y(0 .. kRowColumns) = x * weight, one row

#ifdef CISTERN_ORDERED_AVX2

struct Avx2 {
  static constexpr size_t kRows = 6, kColumns = 16, kRowColumns = 64;

  template <size_t R>
  static void Tile(const float* x, size_t ldx, const float* panel, size_t depth, bool add, float* y,
                   size_t ldy) {
    __m256 sum[R][2];
    for (size_t r = 0; r < R; ++r) {
      sum[r][0] = add ? _mm256_loadu_ps(y + r * ldy) : _mm256_setzero_ps();
      sum[r][1] = add ? _mm256_loadu_ps(y + r * ldy + 8) : _mm256_setzero_ps();
    }
    for (size_t i = 0; i < depth; ++i) {
      const __m256 w0 = _mm256_loadu_ps(panel + i * kColumns);
      const __m256 w1 = _mm256_loadu_ps(panel + i * kColumns + 8);
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

  static void RowTile(const float* x, const float* weight, size_t k, size_t n, float* y) {
    __m256 sum[8];
    for (__m256& s : sum) s = _mm256_setzero_ps();
    for (size_t i = 0; i < k; ++i) {
      const __m256 factor = _mm256_broadcast_ss(x + i);
      for (size_t v = 0; v < 8; ++v) {
        sum[v] = _mm256_fmadd_ps(factor, _mm256_loadu_ps(weight + i * n + 8 * v), sum[v]);
      }
    }
    for (size_t v = 0; v < 8; ++v) _mm256_storeu_ps(y + 8 * v, sum[v]);
  }
};

// Compiled for AVX-512 in a program that is not: called only where the processor has it.
#define CISTERN_AVX512 __attribute__((target("avx512f")))

struct Avx512 {
  static constexpr size_t kRows = 12, kColumns = 32, kRowColumns = 128;

  template <size_t R>
  CISTERN_AVX512 static void Tile(const float* x, size_t ldx, const float* panel, size_t depth,
                                  bool add, float* y, size_t ldy) {
    __m512 sum[R][2];
    for (size_t r = 0; r < R; ++r) {
      sum[r][0] = add ? _mm512_loadu_ps(y + r * ldy) : _mm512_setzero_ps();
      sum[r][1] = add ? _mm512_loadu_ps(y + r * ldy + 16) : _mm512_setzero_ps();
    }
    for (size_t i = 0; i < depth; ++i) {
      const __m512 w0 = _mm512_loadu_ps(panel + i * kColumns);
      const __m512 w1 = _mm512_loadu_ps(panel + i * kColumns + 16);
      for (size_t r = 0; r < R; ++r) {
        const __m512 factor = _mm512_set1_ps(x[r * ldx + i]);
        sum[r][0] = _mm512_fmadd_ps(factor, w0, sum[r][0]);
        sum[r][1] = _mm512_fmadd_ps(factor, w1, sum[r][1]);
      }
    }
    for (size_t r = 0; r < R; ++r) {
      _mm512_storeu_ps(y + r * ldy, sum[r][0]);
      _mm512_storeu_ps(y + r * ldy + 16, sum[r][1]);
    }
  }

  CISTERN_AVX512 static void RowTile(const float* x, const float* weight, size_t k, size_t n,
                                     float* y) {
    __m512 sum[8];
    for (__m512& s : sum) s = _mm512_setzero_ps();
    for (size_t i = 0; i < k; ++i) {
      const __m512 factor = _mm512_set1_ps(x[i]);
      for (size_t v = 0; v < 8; ++v) {
        sum[v] = _mm512_fmadd_ps(factor, _mm512_loadu_ps(weight + i * n + 16 * v), sum[v]);
      }
    }
    for (size_t v = 0; v < 8; ++v) _mm512_storeu_ps(y + 16 * v, sum[v]);
  }
};

bool HasAvx512() {
  static const bool has = __builtin_cpu_supports("avx512f");
  return has;
}

#else

struct Scalar {
  static constexpr size_t kRows = 4, kColumns = 16, kRowColumns = 64;

  template <size_t R>
  static void Tile(const float* x, size_t ldx, const float* panel, size_t depth, bool add, float* y,
                   size_t ldy) {
    for (size_t r = 0; r < R; ++r) {
      if (!add) std::fill_n(y + r * ldy, kColumns, 0.0f);
      for (size_t i = 0; i < depth; ++i) {
        for (size_t c = 0; c < kColumns; ++c) {
          y[r * ldy + c] = std::fma(x[r * ldx + i], panel[i * kColumns + c], y[r * ldy + c]);
        }
      }
    }
  }

  static void RowTile(const float* x, const float* weight, size_t k, size_t n, float* y) {
    std::fill_n(y, kRowColumns, 0.0f);
    for (size_t i = 0; i < k; ++i) {
      for (size_t c = 0; c < kRowColumns; ++c) y[c] = std::fma(x[i], weight[i * n + c], y[c]);
    }
  }
};

#endif

// Tile<rows>, for 1 <= rows <= Kernel::kRows.
template <typename Kernel, size_t R = Kernel::kRows>
void TileOf(size_t rows, const float* x, size_t ldx, const float* panel, size_t depth, bool add,
            float* y, size_t ldy) {
  if (rows == R) return Kernel::template Tile<R>(x, ldx, panel, depth, add, y, ldy);
  if constexpr (R > 1) TileOf<Kernel, R - 1>(rows, x, ldx, panel, depth, add, y, ldy);
}

// Copies `count` floats. For a count that the compiler does not know it would use `rep movs`, whose
// start costs more than a row of a panel.
inline void CopyRow(const float* from, size_t count, float* to) {
  constexpr size_t kStep = 8;
  size_t i = 0;
  for (; i + kStep <= count; i += kStep) std::memcpy(to + i, from + i, kStep * sizeof(float));
#pragma GCC unroll 1
#pragma GCC ivdep
  for (; i < count; ++i) to[i] = from[i];
}

// Copies columns [first, first + width) of `depth` rows of weights into a panel. The other columns
// of the panel keep their values.
template <typename Kernel>
void PackPanel(const float* weight, size_t depth, size_t n, size_t first, size_t width,
               float* panel) {
  for (size_t i = 0; i < depth; ++i) {
    CopyRow(weight + i * n + first, width, panel + i * Kernel::kColumns);
  }
}

// Columns [first, first + kColumns) of `rows` rows of x. packed: as OrderedProduct.
template <typename Kernel>
void Panel(const float* x, const float* weight, const float* packed, size_t rows, size_t k,
           size_t n, size_t first, float* y) {
  constexpr size_t kColumns = Kernel::kColumns;
  alignas(64) float copied[kDepth * kColumns];
  alignas(64) float tile[Kernel::kRows * kColumns];
  const size_t width = std::min(kColumns, n - first);
  if (packed == nullptr && width < kColumns) std::fill(copied, copied + kDepth * kColumns, 0.0f);
  for (size_t begin = 0; begin < k; begin += kDepth) {
    const size_t depth = std::min(kDepth, k - begin);
    const float* const panel = packed == nullptr ? copied : packed + first * k + begin * kColumns;
    if (packed == nullptr) PackPanel<Kernel>(weight + begin * n, depth, n, first, width, copied);
    for (size_t r = 0; r < rows; r += Kernel::kRows) {
      const size_t count = std::min(Kernel::kRows, rows - r);
      float* const out = y + r * n + first;
      if (width == kColumns) {
        TileOf<Kernel>(count, x + r * k + begin, k, panel, depth, begin > 0, out, n);
        continue;
      }
      for (size_t i = 0; begin > 0 && i < count; ++i) {
        CopyRow(out + i * n, width, tile + i * kColumns);
      }
      TileOf<Kernel>(count, x + r * k + begin, k, panel, depth, begin > 0, tile, kColumns);
      for (size_t i = 0; i < count; ++i) CopyRow(tile + i * kColumns, width, out + i * n);
    }
  }
}

// Columns [begin, end) of one row, straight from the weights.
template <typename Kernel>
void Row(const float* x, const float* weight, size_t k, size_t n, size_t begin, size_t end,
         float* y) {
  size_t c = begin;
  for (; c + Kernel::kRowColumns <= end; c += Kernel::kRowColumns) {
    Kernel::RowTile(x, weight + c, k, n, y + c);
  }
  if (c == end) return;
  std::fill(y + c, y + end, 0.0f);
  for (size_t i = 0; i < k; ++i) {
#pragma omp simd
    for (size_t j = c; j < end; ++j) y[j] = std::fma(x[i], weight[i * n + j], y[j]);
  }
}

template <typename Kernel>
void MultiplyInOrder(const float* x, const float* weight, const float* packed, size_t b, size_t k,
                     size_t n, float* y) {
  if (b <= kFewRows) {
    constexpr size_t kColumns = 256;
    return ForPieces(n, kColumns, k * n, [=](size_t begin, size_t end) {
      for (size_t r = 0; r < b; ++r) Row<Kernel>(x + r * k, weight, k, n, begin, end, y + r * n);
    });
  }
  // Blocks of nearly equal size, each of whole tiles.
  const size_t rows = CeilDiv(CeilDiv(b, CeilDiv(b, kBlockRows)), Kernel::kRows) * Kernel::kRows;
  const size_t blocks = CeilDiv(b, rows), panels = CeilDiv(n, Kernel::kColumns);
  ForPieces(blocks * panels, 1, b * n + k * n, [=](size_t task, size_t) {
    const size_t row = task / panels * rows;
    Panel<Kernel>(x + row * k, weight, packed, std::min(rows, b - row), k, n,
                  task % panels * Kernel::kColumns, y + row * n);
  });
}

// All panels one after the other: [k, kColumns] each, the last one padded with zeros.
template <typename Kernel>
void Pack(const float* weight, size_t k, size_t n, float* panels) {
  for (size_t first = 0; first < n; first += Kernel::kColumns) {
    PackPanel<Kernel>(weight, k, n, first, std::min(Kernel::kColumns, n - first),
                      panels + first * k);
  }
}

// Calls use(kernel) with the kernel of this processor.
template <typename Use>
void WithKernel(const Use& use) {
#ifdef CISTERN_ORDERED_AVX2
  if (HasAvx512()) return use(Avx512());
  use(Avx2());
#else
  use(Scalar());
#endif
}

}  // namespace

void OrderedProduct(const float* x, const float* weight, const float* packed, size_t b, size_t k,
                    size_t n, float* y) {
  WithKernel(
      [=](auto kernel) { MultiplyInOrder<decltype(kernel)>(x, weight, packed, b, k, n, y); });
}

PackedWeights::PackedWeights(const float* weight, size_t k, size_t n) {
  WithKernel([&]<typename Kernel>(Kernel) {
    lines_.resize(CeilDiv(CeilDiv(n, Kernel::kColumns) * Kernel::kColumns * k, 16), Line());
    Pack<Kernel>(weight, k, n, lines_.front().floats);
  });
}

}  // namespace cistern::op
