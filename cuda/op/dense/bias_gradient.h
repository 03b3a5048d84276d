// The backward epilogue of a dense layer: ReLU backward and the gradient of the bias, in one sweep.
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// dy = y > 0 ? dy : 0 unless y is null, and dbias = the column sums of dy.
//
// y: [b, n], the output of a ReLU. dy: [b, n], in place; written only where y is not null. dbias:
// [n], overwritten. scratch: BiasGradientScratchFloats(b, n).
void BiasGradient(ConstValues y, Values dy, float* dbias, size_t b, size_t n, float* scratch,
                  Stream& stream);
size_t BiasGradientScratchFloats(size_t b, size_t n);

}  // namespace cistern::op
