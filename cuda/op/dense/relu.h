// ReLU, alone or fused with the dropout that follows it.
#pragma once

#include "cuda/op/dense/dropout.h"
#include "cuda/op/primitive/op.h"

namespace cistern::op {

// y = max(x, 0); NaN stays NaN. x, y: [count], may be the same array.
void Relu(ConstValues x, Values y, size_t count, Stream& stream);

// dx = y > 0 ? dy : 0, with y the output of Relu. dy and dx may be the same array (kOverwrite).
void ReluBackward(ConstValues y, ConstValues dy, Write write, Values dx, size_t count,
                  Stream& stream);

// y = Dropout(max(x, 0)). No mask is kept: an element that was cut or dropped is zero in y, and its
// gradient is zero. x, y: [b, n], may be the same array.
void ReluDropout(ConstValues x, const DropoutDraw& draw, Values y, size_t b, size_t n,
                 Stream& stream);

// dx = y > 0 ? dy / (1 - rate) : 0. dy and dx may be the same array (kOverwrite).
void ReluDropoutBackward(ConstValues y, ConstValues dy, float rate, Write write, Values dx,
                         size_t count, Stream& stream);

}  // namespace cistern::op
