// PReLU (He et al. 2015, arXiv 1502.01852; the activation of Deep Interest Networks beside Dice): a
// ReLU whose slope below 0 is a weight of each column.
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// y = x > 0 ? x : slope * x; NaN stays NaN. x, y: [b, n], may be the same array. slope: [n].
void Prelu(ConstValues x, const float* slope, Values y, size_t b, size_t n, Stream& stream);

// dx = x > 0 ? dy : slope * dy; dslope(c) = sum over rows of min(x, 0) * dy.
//
// dx: [b, n], may be null, and may be dy (kOverwrite). dslope: [n], overwritten.
// scratch: PreluScratchFloats(b, n).
void PreluBackward(ConstValues x, const float* slope, ConstValues dy, Write dx_write, Values dx,
                   float* dslope, size_t b, size_t n, float* scratch, Stream& stream);
size_t PreluScratchFloats(size_t b, size_t n);

}  // namespace cistern::op
