// Sums of a whole array, in double and in a fixed order: for the global norm and the regularizers.
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// *sum = sum of x[i]^2. x: [count]. sum: one double, overwritten. scratch: SumScratchFloats(count).
void SumOfSquares(const float* x, double* sum, size_t count, float* scratch, Stream& stream);

// *sum = sum of |x[i]|. As above.
void SumOfMagnitudes(const float* x, double* sum, size_t count, float* scratch, Stream& stream);

size_t SumScratchFloats(size_t count);

}  // namespace cistern::op
