// The other losses of HugeCTR 2.3 (bce_loss.h has the binary one): CrossEntropyLoss over two
// classes and MultiCrossEntropyLoss over several labels.
#pragma once

#include "cuda/op/loss/weighted_labels.h"
#include "cuda/op/primitive/op.h"

namespace cistern::op {

// Softmax over two classes: *loss = sum over i of weight(i) * -log(softmax(x(i))(class of i)),
// divided by `all`. A label below 0.5 is class 0, any other class 1. dlogit = weight * (softmax -
// one-hot) / all. all: b, or the number of samples of several processes (bce_loss.h).
// labels.logit_offset is added to the logit of class 1, here and to each logit below.
//
// logits, dlogits: [b, 2], of one type. labels: [b]. loss: one double, overwritten; 0 if b is 0.
// scratch: LabelLossScratchFloats(b). A logit that is not finite makes *loss not finite.
void TwoClassLoss(ConstValues logits, WeightedLabels labels, double* loss, ScaledValues dlogits,
                  size_t b, size_t all, float* scratch, Stream& stream);

// p(i) = softmax(x(i))(class 1). logits: [b, 2]. p: [b].
void TwoClassProbability(ConstValues logits, float* p, size_t b, Stream& stream);

// A label below this is masked: it has no loss and no gradient.
inline constexpr float kMaskedBelow = -0.5f;

// Weighted binary cross-entropy of each label: *loss = sum over i, k of weight(i) *
// target_weight(k) * bce(x(i, k), label(i, k)) / (all * labels_num). Masked labels add 0 to the sum
// but count in the divisor. dlogit is the derivative.
//
// logits, labels, dlogits: [b, labels_num]. target_weight: [labels_num]. The rest as above, with
// LabelLossScratchFloats(b * labels_num). A logit that is not finite makes *loss not finite unless
// its label is masked.
void MultiLabelLoss(ConstValues logits, WeightedLabels labels, const float* target_weight,
                    double* loss, ScaledValues dlogits, size_t b, size_t all, size_t labels_num,
                    float* scratch, Stream& stream);

size_t LabelLossScratchFloats(size_t count);

}  // namespace cistern::op
