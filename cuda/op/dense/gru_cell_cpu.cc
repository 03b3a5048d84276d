#include "cuda/op/dense/gru_cell.h"

#include "cuda/op/dense/gru_formula.h"
#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/element.h"

namespace cistern::op {

namespace gpu {  // gru_cell.cu
decltype(op::GruCell) GruCell;
decltype(op::GruCellBackward) GruCellBackward;
}  // namespace gpu

namespace {

constexpr size_t kGruCost = 60;  // three exponentials, relative to a load and a store

template <typename T>
GruParts ReadParts(const T* row, size_t c, size_t n) {
  if (row == nullptr) return {0, 0, 0};
  return {row[c], row[n + c], row[2 * n + c]};
}

template <typename T>
void WriteParts(const GruParts& parts, T* row, size_t c, size_t n) {
  row[c] = parts.r;
  row[n + c] = parts.i;
  row[2 * n + c] = parts.m;
}

// Row r of an array of n columns; null if there is no array.
template <typename T>
T* RowAt(T* x, size_t r, size_t n) {
  return x == nullptr ? nullptr : x + r * n;
}

template <typename T>
void GruCellOf(T* gates, const T* product, const T* h, T* y, size_t b, size_t n) {
  ForPieces(b, RowGrain(n), kGruCost * b * n, [=](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      T* const x = gates + r * 3 * n;
      const T *hidden = RowAt(product, r, 3 * n), *before = RowAt(h, r, n);
      for (size_t c = 0; c < n; ++c) {
        const GruParts made = GruGatesAt(ReadParts(x, c, n), ReadParts(hidden, c, n));
        WriteParts(made, x, c, n);
        y[r * n + c] = GruOutputAt(made, before == nullptr ? 0.0f : float{before[c]});
      }
    }
  });
}

template <typename T>
struct GruGradients {
  T *gates, *product, *h;
};

template <typename T>
void GruCellBackwardOf(const T* gates, const T* product, const T* h, const T* dy,
                       const GruGradients<T>& grads, size_t b, size_t n) {
  ForPieces(b, RowGrain(n), kGruCost / 3 * b * n, [=](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      const T *x = gates + r * 3 * n, *hidden = RowAt(product, r, 3 * n), *before = RowAt(h, r, n);
      for (size_t c = 0; c < n; ++c) {
        const GruParts at = ReadParts(x, c, n);
        const float out = dy[r * n + c];
        GruParts grad = GruGradientAt(at, ReadParts(hidden, c, n).m,
                                      before == nullptr ? 0.0f : float{before[c]}, out);
        WriteParts(grad, grads.gates + r * 3 * n, c, n);
        grad.m *= at.r;
        WriteParts(grad, grads.product + r * 3 * n, c, n);
        grads.h[r * n + c] = out * at.i;
      }
    }
  });
}

}  // namespace

void GruCell(Values gates, ConstValues product, ConstValues h, Values y, size_t b, size_t n,
             Stream& stream) {
  CISTERN_RUN_ON_GPU(GruCell, gates, product, h, y, b, n);
  ForType(gates.type,
          [&]<typename T>() { GruCellOf(As<T>(gates), As<T>(product), As<T>(h), As<T>(y), b, n); });
}

void GruCellBackward(ConstValues gates, ConstValues product, ConstValues h, ConstValues dy,
                     Values dgates, Values dproduct, Values dh, size_t b, size_t n,
                     Stream& stream) {
  CISTERN_RUN_ON_GPU(GruCellBackward, gates, product, h, dy, dgates, dproduct, dh, b, n);
  ForType(gates.type, [&]<typename T>() {
    GruCellBackwardOf<T>(As<T>(gates), As<T>(product), As<T>(h), As<T>(dy),
                         {As<T>(dgates), As<T>(dproduct), As<T>(dh)}, b, n);
  });
}

}  // namespace cistern::op
