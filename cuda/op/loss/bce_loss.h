// Binary cross-entropy with logits (HugeCTR 2.3, BinaryCrossEntropyLoss), and the sigmoid.
#pragma once

#include "cuda/op/loss/weighted_labels.h"
#include "cuda/op/primitive/op.h"

namespace cistern::op {

// *loss = sum over i of weight * (max(x, 0) - x * label + log(1 + exp(-|x|))), divided by `all`:
// the form that neither overflows nor loses a small loss. dlogit(i) = weight(i) * (sigmoid(x(i)) -
// label(i)) / all. x is the logit and labels.logit_offset; labels.positive_weight as it says there.
// With all = count the loss is the mean (PyTorch's BCEWithLogitsLoss with `weight`); with `all`
// counting the logits of several processes it is this process's share of the mean.
//
// logits, labels: [count]; labels in [0, 1]. loss: one double, overwritten; 0 if count is 0.
// dlogits: [count], of the logits' type, overwritten; may be null. scratch:
// BceLossScratchFloats(count). A logit that is not finite makes *loss not finite, so checking the
// loss is enough.
void BceLoss(ConstValues logits, WeightedLabels labels, double* loss, ScaledValues dlogits,
             size_t count, size_t all, float* scratch, Stream& stream);
size_t BceLossScratchFloats(size_t count);

// y = 1 / (1 + exp(-x)). x: [count]. y: [count] floats, may be x. The result is in [0, 1]; NaN only
// for NaN.
void Sigmoid(ConstValues x, float* y, size_t count, Stream& stream);

}  // namespace cistern::op
