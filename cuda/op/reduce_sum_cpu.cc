#include "cuda/op/reduce_sum.h"

#include "cuda/op/cpu.h"

namespace cistern::op {

namespace gpu {  // reduce_sum.cu
decltype(op::ReduceSum) ReduceSum;
decltype(op::ReduceSumBackward) ReduceSumBackward;
}  // namespace gpu

namespace {

// y(i) = sum over a < n of x(a, i) for i in [begin, end) of rows `inner` wide.
void SumRows(const float* x, size_t n, size_t inner, size_t begin, size_t end, float* y) {
  std::fill(y + begin, y + end, 0.0f);
  for (size_t a = 0; a < n; ++a) {
    const float* row = x + a * inner;
#pragma omp simd
    for (size_t i = begin; i < end; ++i) y[i] += row[i];
  }
}

float SumRow(const float* x, size_t n) {
  float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
  for (size_t a = 0; a < n; ++a) sum += x[a];
  return sum;
}

}  // namespace

void ReduceSum(const float* x, float* y, size_t outer, size_t n, size_t inner, Stream& stream) {
  CISTERN_RUN_ON_GPU(ReduceSum, x, y, outer, n, inner);
  const size_t cost = outer * n * inner;
  if (inner == 1) {
    ForPieces(outer, RowGrain(n), cost, [=](size_t begin, size_t end) {
      for (size_t o = begin; o < end; ++o) y[o] = SumRow(x + o * n, n);
    });
    return;
  }
  // Few outer rows (axis 0) are shared among the threads by columns, many by rows.
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

void ReduceSumBackward(const float* dy, Write write, float* dx, size_t outer, size_t n,
                       size_t inner, Stream& stream) {
  CISTERN_RUN_ON_GPU(ReduceSumBackward, dy, write, dx, outer, n, inner);
  if (n == 0) return;
  ForPieces(outer * n, RowGrain(inner), outer * n * inner, [=](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      const float* from = dy + row / n * inner;
      float* to = dx + row * inner;
      if (write == Write::kOverwrite) {
        std::copy(from, from + inner, to);
      } else {
#pragma omp simd
        for (size_t i = 0; i < inner; ++i) to[i] += from[i];
      }
    }
  });
}

}  // namespace cistern::op
