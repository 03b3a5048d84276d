#include "cuda/op/dense/softmax.h"

#include <algorithm>
#include <cmath>

#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/float_row.h"

namespace cistern::op {

namespace gpu {  // softmax.cu
decltype(op::Softmax) Softmax;
decltype(op::SoftmaxBackward) SoftmaxBackward;
}  // namespace gpu

namespace {

constexpr size_t kSoftmaxCost = 20;  // an exponential and three passes

template <typename T>
void SoftmaxOf(float factor, const T* x, T* y, size_t b, size_t n) {
  ForPieces(b, RowGrain(n), kSoftmaxCost * b * n, [=](size_t begin, size_t end) {
    FloatRow<T> row(n);
    for (size_t r = begin; r < end; ++r) {
      const T* from = x + r * n;
      float* to = row.Open(y + r * n, Write::kOverwrite);
      float largest = -INFINITY;
      for (size_t c = 0; c < n; ++c) largest = std::max(largest, factor * from[c]);
      double sum = 0;
      for (size_t c = 0; c < n; ++c) {
        to[c] = std::exp(factor * from[c] - largest);
        sum += to[c];
      }
      const float share = static_cast<float>(1 / sum);
#pragma omp simd
      for (size_t c = 0; c < n; ++c) to[c] *= share;
      row.Close(y + r * n);
    }
  });
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
  ForType(x.type, [&]<typename T>() { SoftmaxOf(factor, As<T>(x), As<T>(y), b, n); });
}

void SoftmaxBackward(float factor, ConstValues y, ConstValues dy, Write write, Values dx, size_t b,
                     size_t n, Stream& stream) {
  CISTERN_RUN_ON_GPU(SoftmaxBackward, factor, y, dy, write, dx, b, n);
  ForType(y.type, [&]<typename T>() {
    SoftmaxBackwardOf(factor, As<T>(y), As<T>(dy), write, As<T>(dx), b, n);
  });
}

}  // namespace cistern::op
