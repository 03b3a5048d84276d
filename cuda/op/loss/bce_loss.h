// Binary cross-entropy with logits (HugeCTR 2.3, BinaryCrossEntropyLoss), and the sigmoid.
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// *loss = sum over i of max(x, 0) - x * label + log(1 + exp(-|x|)), the form that neither
// overflows nor loses a small loss, over `all`; dlogit(i) = (sigmoid(x(i)) - label(i)) / all. So
// the loss is the mean where all = count, and this process's part of it where `all` counts the
// logits of several.
//
// logits, labels: [count]; labels in [0, 1]. loss: one double, overwritten; 0 when count is 0.
// dlogits: [count], of the logits' type, overwritten; null: not needed. scratch:
// BceLossScratchFloats(count). A logit that is not finite makes *loss not finite: a caller can rely
// on looking at it.
void BceLoss(ConstValues logits, const float* labels, double* loss, ScaledValues dlogits,
             size_t count, size_t all, float* scratch, Stream& stream);
size_t BceLossScratchFloats(size_t count);

// y = 1 / (1 + exp(-x)). x: [count]. y: [count] floats, may be x. In [0, 1], never NaN for a
// number.
void Sigmoid(ConstValues x, float* y, size_t count, Stream& stream);

}  // namespace cistern::op
