// The logistic function as an activation: the Sigmoid layer of HugeCTR 3.x. (op::Sigmoid, which
// turns logits into predictions, is with the losses.)
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// y = 1 / (1 + exp(-x)); NaN stays NaN. x, y: [count], may be the same array.
void Logistic(ConstValues x, Values y, size_t count, Stream& stream);

// dx = s(x) * s(-x) * dy, with s = Logistic: exact where y rounds to 1. dy and dx may be the same
// array (kOverwrite).
void LogisticBackward(ConstValues x, ConstValues dy, Write write, Values dx, size_t count,
                      Stream& stream);

}  // namespace cistern::op
