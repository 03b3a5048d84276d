// The cross-entropy of one logit, and sums of them, for the CPU builds of the losses. Internal to
// x_cpu.cc.
//
// In double: the loss layer has few elements a sample, and its accuracy is everyone's.
#pragma once

#include <cmath>

#include "cuda/op/cpu.h"

namespace cistern::op {

inline constexpr size_t kLossGrain = 256;  // elements of one piece

inline double SigmoidOf(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}

// -log of the probability that sigmoid(x) gives the label, in the form that cannot overflow.
inline double LogLossOf(double x, double label) {
  return (x > 0 ? x : 0) - x * label + std::log1p(std::exp(-std::abs(x)));
}

// The sum of one(i) over [0, count), in pieces whose sums are added in order. scratch:
// LossScratchFloats(count).
template <typename One>
double SumOfLosses(size_t count, float* scratch, const One& one) {
  double* partial = reinterpret_cast<double*>(scratch);
  ForPieces(count, kLossGrain, 32 * count, [=](size_t begin, size_t end) {
    double sum = 0;
    for (size_t i = begin; i < end; ++i) sum += one(i);
    partial[begin / kLossGrain] = sum;
  });
  double sum = 0;
  for (size_t k = 0; k < CeilDiv(count, kLossGrain); ++k) sum += partial[k];
  return sum;
}
inline size_t LossScratchFloats(size_t count) {
  return 2 * CeilDiv(count, kLossGrain);
}

// What an element counts in a mean over `count`; 0 of none.
inline double ShareOf(size_t count) {
  return count == 0 ? 0.0 : 1.0 / static_cast<double>(count);
}

}  // namespace cistern::op
