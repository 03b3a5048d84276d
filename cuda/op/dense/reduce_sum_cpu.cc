#include "cuda/op/dense/reduce_sum.h"

#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/float_row.h"

namespace cistern::op {

namespace gpu {  // reduce_sum.cu
decltype(op::ReduceSum) ReduceSum;
decltype(op::ReduceSumBackward) ReduceSumBackward;
}  // namespace gpu

namespace {

// y(i) = sum over a < n of x(a, i) for i in [begin, end) of rows `inner` wide.
template <typename T>
void SumRows(const T* x, size_t n, size_t inner, size_t begin, size_t end, T* y) {
  FloatRow<T> row(end - begin);
  float* sum = row.Open(y + begin, Write::kOverwrite);
  std::fill(sum, sum + (end - begin), 0.0f);
  for (size_t a = 0; a < n; ++a) {
    const T* from = x + a * inner + begin;
#pragma omp simd
    for (size_t i = 0; i < end - begin; ++i) sum[i] += from[i];
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
void ReduceSumForwardOf(const T* x, T* y, size_t outer, size_t n, size_t inner) {
  const size_t cost = outer * n * inner;
  if (inner == 1) {
    ForPieces(outer, RowGrain(n), cost, [=](size_t begin, size_t end) {
      for (size_t o = begin; o < end; ++o) y[o] = SumRow(x + o * n, n);
    });
    return;
  }
  // With one outer row (axis 0) the threads divide the columns, otherwise the rows.
  if (outer == 1) {
    ForPieces(inner, 16, cost,
              [=](size_t begin, size_t end) { SumRows(x, n, inner, begin, end, y); });
    return;
  }
  ForPieces(outer, RowGrain(n * inner), cost, [=](size_t begin, size_t end) {
    for (size_t o = begin; o < end; ++o) {
      SumRows(x + o * n * inner, n, inner, 0, inner, y + o * inner);
    }
  });
}

template <typename T>
void ReduceSumBackwardOf(const T* dy, Write write, T* dx, size_t outer, size_t n, size_t inner) {
  ForPieces(outer * n, RowGrain(inner), outer * n * inner, [=](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      const T* from = dy + row / n * inner;
      T* to = dx + row * inner;
      if (write == Write::kOverwrite) {
        std::copy(from, from + inner, to);
      } else {
#pragma omp simd
        for (size_t i = 0; i < inner; ++i) to[i] += from[i];
      }
    }
  });
}

}  // namespace

void ReduceSum(ConstValues x, Values y, size_t outer, size_t n, size_t inner, Stream& stream) {
  CISTERN_RUN_ON_GPU(ReduceSum, x, y, outer, n, inner);
  ForType(x.type, [&]<typename T>() { ReduceSumForwardOf(As<T>(x), As<T>(y), outer, n, inner); });
}

void ReduceSumBackward(ConstValues dy, Write write, Values dx, size_t outer, size_t n, size_t inner,
                       Stream& stream) {
  CISTERN_RUN_ON_GPU(ReduceSumBackward, dy, write, dx, outer, n, inner);
  if (n == 0) return;
  ForType(dy.type,
          [&]<typename T>() { ReduceSumBackwardOf(As<T>(dy), write, As<T>(dx), outer, n, inner); });
}

}  // namespace cistern::op
