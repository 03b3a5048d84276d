// ELU (HugeCTR 2.3, elu_layer).
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// y = x < 0 ? alpha * (exp(x) - 1) : x; NaN stays NaN. x, y: [count], may be the same array.
void Elu(ConstValues x, float alpha, Values y, size_t count, Stream& stream);

// dx = x < 0 ? alpha * exp(x) * dy : dy. dy and dx may be the same array (kOverwrite).
void EluBackward(ConstValues x, float alpha, ConstValues dy, Write write, Values dx, size_t count,
                 Stream& stream);

}  // namespace cistern::op
