// The backward pass of a first layer with few inputs that ends in a ReLU: nothing needs the
// gradient of its input, so one sweep over the output and its gradient is all.
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// The most inputs of such a layer: a thread of a GPU keeps the sums of all of them.
inline constexpr size_t kMaxNarrowInputs = 16;

// dweight = x^T g and dbias = the column sums of g, with g = y > 0 ? dy : 0.
//
// x: [b, k], k at most kMaxNarrowInputs. y: [b, n], the output of a ReLU. dy: [b, n], undefined
// afterwards. dweight: [k, n], overwritten. dbias: [n], overwritten; may be null. scratch:
// NarrowBackwardScratchFloats. The CPU computes BiasGradient and FullyConnectedBackward, with their
// bits; a GPU never writes g.
void NarrowBackward(ConstValues x, ConstValues y, Values dy, float* dweight, float* dbias, size_t b,
                    size_t k, size_t n, float* scratch, Stream& stream);
size_t NarrowBackwardScratchFloats(ElementType type, size_t b, size_t k, size_t n);

}  // namespace cistern::op
