// Sums of losses on the CPU. Internal to x_cpu.cc.
#pragma once

#include "cuda/op/loss/log_loss.h"
#include "cuda/op/primitive/cpu.h"

namespace cistern::op {

// The sum of one(i) over [0, count), in pieces; the sums of the pieces are added in order. scratch:
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

}  // namespace cistern::op
