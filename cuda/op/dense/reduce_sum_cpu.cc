#include "cuda/op/dense/reduce_sum.h"

#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/float_row.h"

namespace cistern::op {

namespace gpu {  // reduce_sum.cu
decltype(op::ScaledSum) ScaledSum;
decltype(op::ScaledRepeat) ScaledRepeat;
}  // namespace gpu

namespace {

// y(i) = factor * sum over a < n of x(a, i), or +=, for i in [begin, end) of rows `inner` wide.
template <typename T>
void SumRows(float factor, const T* x, size_t n, size_t inner, size_t begin, size_t end,
             Write write, T* y) {
  const size_t width = end - begin;
  FloatRow<T> row(width);
  std::vector<float> apart(write == Write::kAccumulate ? width : 0);  // from the old values
  float* const to = row.Open(y + begin, write);
  float* const sum = apart.empty() ? to : apart.data();
  std::fill(sum, sum + width, 0.0f);
  for (size_t a = 0; a < n; ++a) {
    const T* from = x + a * inner + begin;
#pragma omp simd
    for (size_t i = 0; i < width; ++i) sum[i] += from[i];
  }
  if (!apart.empty()) {
#pragma omp simd
    for (size_t i = 0; i < width; ++i) to[i] += factor * sum[i];
  } else if (factor != 1) {
#pragma omp simd
    for (size_t i = 0; i < width; ++i) to[i] *= factor;
  }
  row.Close(y + begin);
}

template <typename T>
float SumRow(const T* x, size_t n) {
  float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
  for (size_t a = 0; a < n; ++a) sum += x[a];
  return sum;
}

template <typename T>
void ScaledSumOf(float factor, const T* x, Write write, T* y, size_t outer, size_t n,
                 size_t inner) {
  const size_t cost = outer * n * inner;
  if (inner == 1) {
    ForPieces(outer, RowGrain(n), cost, [=](size_t begin, size_t end) {
      for (size_t o = begin; o < end; ++o) {
        const float sum = factor * SumRow(x + o * n, n);
        y[o] = write == Write::kAccumulate ? y[o] + sum : sum;
      }
    });
    return;
  }
  // With one outer row (axis 0) the threads divide the columns, otherwise the rows.
  if (outer == 1) {
    ForPieces(inner, 16, cost, [=](size_t begin, size_t end) {
      SumRows(factor, x, n, inner, begin, end, write, y);
    });
    return;
  }
  ForPieces(outer, RowGrain(n * inner), cost, [=](size_t begin, size_t end) {
    for (size_t o = begin; o < end; ++o) {
      SumRows(factor, x + o * n * inner, n, inner, 0, inner, write, y + o * inner);
    }
  });
}

template <typename T>
void ScaledRepeatOf(float factor, const T* x, Write write, T* y, size_t outer, size_t n,
                    size_t inner) {
  ForPieces(outer * n, RowGrain(inner), outer * n * inner, [=](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      const T* from = x + row / n * inner;
      T* to = y + row * inner;
      if (write == Write::kAccumulate) {
#pragma omp simd
        for (size_t i = 0; i < inner; ++i) to[i] += factor * from[i];
      } else if (factor == 1) {
        std::copy(from, from + inner, to);
      } else {
#pragma omp simd
        for (size_t i = 0; i < inner; ++i) to[i] = factor * from[i];
      }
    }
  });
}

}  // namespace

void ScaledSum(float factor, ConstValues x, Write write, Values y, size_t outer, size_t n,
               size_t inner, Stream& stream) {
  CISTERN_RUN_ON_GPU(ScaledSum, factor, x, write, y, outer, n, inner);
  ForType(x.type,
          [&]<typename T>() { ScaledSumOf(factor, As<T>(x), write, As<T>(y), outer, n, inner); });
}

void ScaledRepeat(float factor, ConstValues x, Write write, Values y, size_t outer, size_t n,
                  size_t inner, Stream& stream) {
  CISTERN_RUN_ON_GPU(ScaledRepeat, factor, x, write, y, outer, n, inner);
  if (n == 0) return;
  ForType(x.type, [&]<typename T>() {
    ScaledRepeatOf(factor, As<T>(x), write, As<T>(y), outer, n, inner);
  });
}

}  // namespace cistern::op
