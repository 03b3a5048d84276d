// Memory traffic: 4 bytes per float of x, and 8 per 4096 of them.
#include "cuda/op/dense/sum.h"

#include "cuda/op/primitive/reduce.cuh"

namespace cistern::op::gpu {
namespace {

constexpr size_t kGrain = 4096;  // floats per partial sum, as SumScratchFloats assumes

}  // namespace

void SumOfSquares(const float* x, double* sum, size_t count, float* scratch, Stream& stream) {
  SumInPieces<8>("SumOfSquares", count, kGrain, 1.0, scratch, sum, stream,
                 [=] __device__(size_t i) { return double{x[i]} * double{x[i]}; });
}

void SumOfMagnitudes(const float* x, double* sum, size_t count, float* scratch, Stream& stream) {
  SumInPieces<8>("SumOfMagnitudes", count, kGrain, 1.0, scratch, sum, stream,
                 [=] __device__(size_t i) { return fabs(double{x[i]}); });
}

}  // namespace cistern::op::gpu
