// The logit of an event that needs two others: p = s(a) * s(b), with s(z) = 1 / (1 + exp(-z)), has
// the logit -log(exp(-a) + exp(-b) + exp(-a - b)). Losses and metrics then read it as any other
// logit, without the digits that 1 - p loses near 1.
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// y = log(p / (1 - p)) with p = s(a) * s(b). a, b, y: [count]; y may be a or b.
void ProductLogit(ConstValues a, ConstValues b, Values y, size_t count, Stream& stream);

// dx = dy * d y / d x for one of the two factors: x is it, and `other` the other one. The
// derivative is (1 - s(x)) / (1 - p), between 0 and 1. All arrays: [count]; dy and dx may be the
// same array (kOverwrite).
void ProductLogitBackward(ConstValues x, ConstValues other, ConstValues dy, Write write, Values dx,
                          size_t count, Stream& stream);

}  // namespace cistern::op
