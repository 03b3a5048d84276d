// ReLU, alone or with the dropout that follows it in one sweep.
#pragma once

#include "cuda/op/dropout.h"
#include "cuda/op/op.h"

namespace cistern::op {

// y = max(x, 0); NaN stays NaN. x, y: [count], may be the same array.
void Relu(const float* x, float* y, size_t count, Stream& stream);

// dx = y > 0 ? dy : 0, with y the output of Relu. dy and dx may be the same array (kOverwrite).
void ReluBackward(const float* y, const float* dy, Write write, float* dx, size_t count,
                  Stream& stream);

// y = Dropout(max(x, 0)). No mask is kept: an element that was cut or dropped is zero in y, and
// those are the ones whose gradient is zero. x, y: [b, n], may be the same array.
void ReluDropout(const float* x, const DropoutDraw& draw, float* y, size_t b, size_t n,
                 Stream& stream);

// dx = y > 0 ? dy / (1 - rate) : 0. dy and dx may be the same array (kOverwrite).
void ReluDropoutBackward(const float* y, const float* dy, float rate, Write write, float* dx,
                         size_t count, Stream& stream);

}  // namespace cistern::op
