#include "cuda/op/dense/sum.h"

#include <cmath>

#include "cuda/op/primitive/cpu.h"

namespace cistern::op {

namespace gpu {  // sum.cu
decltype(op::SumOfSquares) SumOfSquares;
decltype(op::SumOfMagnitudes) SumOfMagnitudes;
}  // namespace gpu

namespace {

// Separate functions: gcc 12 does not vectorize a reduction inside a parallel lambda.

double SquareSum(const float* x, size_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (size_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

double MagnitudeSum(const float* x, size_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (size_t i = 0; i < n; ++i) sum += std::abs(static_cast<double>(x[i]));
  return sum;
}

// *sum = the sum of piece_sum over the pieces of x, in order.
void SumPieces(double (*piece_sum)(const float*, size_t), const float* x, size_t count,
               float* scratch, double* sum) {
  double* partial = reinterpret_cast<double*>(scratch);
  ForPieces(count, kElementGrain, count, [=](size_t begin, size_t end) {
    partial[begin / kElementGrain] = piece_sum(x + begin, end - begin);
  });
  *sum = 0;
  for (size_t k = 0; k < CeilDiv(count, kElementGrain); ++k) *sum += partial[k];
}

}  // namespace

void SumOfSquares(const float* x, double* sum, size_t count, float* scratch, Stream& stream) {
  CISTERN_RUN_ON_GPU(SumOfSquares, x, sum, count, scratch);
  SumPieces(SquareSum, x, count, scratch, sum);
}

void SumOfMagnitudes(const float* x, double* sum, size_t count, float* scratch, Stream& stream) {
  CISTERN_RUN_ON_GPU(SumOfMagnitudes, x, sum, count, scratch);
  SumPieces(MagnitudeSum, x, count, scratch, sum);
}

size_t SumScratchFloats(size_t count) {
  return 2 * CeilDiv(count, kElementGrain);
}

}  // namespace cistern::op
