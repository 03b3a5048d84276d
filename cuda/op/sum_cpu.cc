#include "cuda/op/sum.h"

#include <cmath>

#include "cuda/op/cpu.h"

namespace cistern::op {
namespace {

// *sum = sum of term(i) over [0, count): one double a piece, then the pieces in order.
template <typename Term>
void SumTerms(size_t count, float* scratch, double* sum, const Term& term) {
  double* partial = reinterpret_cast<double*>(scratch);
  ForPieces(count, kElementGrain, count, [=](size_t begin, size_t end) {
    double s = 0;
#pragma omp simd reduction(+ : s)
    for (size_t i = begin; i < end; ++i) s += term(i);
    partial[begin / kElementGrain] = s;
  });
  *sum = 0;
  for (size_t k = 0; k < CeilDiv(count, kElementGrain); ++k) *sum += partial[k];
}

}  // namespace

void SumOfSquares(const float* x, double* sum, size_t count, float* scratch, Stream& stream) {
  if (!OnCpu(stream)) return;
  SumTerms(count, scratch, sum, [x](size_t i) {
    const double v = x[i];
    return v * v;
  });
}

void SumOfMagnitudes(const float* x, double* sum, size_t count, float* scratch, Stream& stream) {
  if (!OnCpu(stream)) return;
  SumTerms(count, scratch, sum, [x](size_t i) { return std::abs(static_cast<double>(x[i])); });
}

size_t SumScratchFloats(size_t count) {
  return 2 * CeilDiv(count, kElementGrain);
}

}  // namespace cistern::op
