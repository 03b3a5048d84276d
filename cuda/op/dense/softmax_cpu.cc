#include "cuda/op/dense/softmax.h"

#include <algorithm>
#include <cmath>

#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/float_row.h"

namespace cistern::op {

namespace gpu {  // softmax.cu
decltype(op::Softmax) Softmax;
decltype(op::MaskedSoftmax) MaskedSoftmax;
decltype(op::SoftmaxBackward) SoftmaxBackward;
}  // namespace gpu

namespace {

constexpr size_t kSoftmaxCost = 20;  // an exponential and three passes

// exponents(r): the exponents of row r, a function of the column.
template <typename T, typename Exponents>
void SoftmaxOf(const Exponents& exponents, T* y, size_t b, size_t n) {
  ForPieces(b, RowGrain(n), kSoftmaxCost * b * n, [&](size_t begin, size_t end) {
    FloatRow<T> row(n);
    for (size_t r = begin; r < end; ++r) {
      const auto exponent = exponents(r);
      float* to = row.Open(y + r * n, Write::kOverwrite);
      float largest = -INFINITY;
      for (size_t c = 0; c < n; ++c) largest = std::max(largest, exponent(c));
      double sum = 0;
      for (size_t c = 0; c < n; ++c) {
        to[c] = std::exp(exponent(c) - largest);
        sum += to[c];
      }
      const float share = static_cast<float>(1 / sum);
#pragma omp simd
      for (size_t c = 0; c < n; ++c) to[c] *= share;
      row.Close(y + r * n);
    }
  });
}

// The least penalty of a row is left out: it cancels, and would cost digits.
template <typename T>
void MaskedSoftmaxOf(float factor, const T* x, const T* mask, T* y, size_t b, size_t heads,
                     size_t rows, size_t n) {
  const auto exponents = [=](size_t r) {
    const T *from = x + r * n, *kept = mask + (r / (heads * rows) * rows + r % rows) * n;
    float most = -INFINITY;
    for (size_t c = 0; c < n; ++c) most = std::max(most, float{kept[c]});
    return [=](size_t c) { return factor * from[c] - kMaskPenalty * (most - kept[c]); };
  };
  SoftmaxOf(exponents, y, b * heads * rows, n);
}

template <typename T>
void SoftmaxBackwardOf(float factor, const T* y, const T* dy, Write write, T* dx, size_t b,
                       size_t n) {
  ForPieces(b, RowGrain(n), 4 * b * n, [=](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      const T *out = y + r * n, *g = dy + r * n;
      T* to = dx + r * n;
      double dot = 0;
      for (size_t c = 0; c < n; ++c) dot += double{out[c]} * double{g[c]};
      const float mean = static_cast<float>(dot);
      for (size_t c = 0; c < n; ++c) {
        const float grad = factor * out[c] * (g[c] - mean);
        to[c] = write == Write::kAccumulate ? to[c] + grad : grad;
      }
    }
  });
}

}  // namespace

void Softmax(float factor, ConstValues x, Values y, size_t b, size_t n, Stream& stream) {
  CISTERN_RUN_ON_GPU(Softmax, factor, x, y, b, n);
  ForType(x.type, [&]<typename T>() {
    const T* from = As<T>(x);
    const auto exponents = [=](size_t r) {
      return [=, row = from + r * n](size_t c) { return factor * row[c]; };
    };
    SoftmaxOf(exponents, As<T>(y), b, n);
  });
}

void MaskedSoftmax(float factor, ConstValues x, ConstValues mask, Values y, size_t b, size_t heads,
                   size_t rows, size_t n, Stream& stream) {
  CISTERN_RUN_ON_GPU(MaskedSoftmax, factor, x, mask, y, b, heads, rows, n);
  ForType(x.type, [&]<typename T>() {
    MaskedSoftmaxOf(factor, As<T>(x), As<T>(mask), As<T>(y), b, heads, rows, n);
  });
}

void SoftmaxBackward(float factor, ConstValues y, ConstValues dy, Write write, Values dx, size_t b,
                     size_t n, Stream& stream) {
  CISTERN_RUN_ON_GPU(SoftmaxBackward, factor, y, dy, write, dx, b, n);
  ForType(y.type, [&]<typename T>() {
    SoftmaxBackwardOf(factor, As<T>(y), As<T>(dy), write, As<T>(dx), b, n);
  });
}

}  // namespace cistern::op
