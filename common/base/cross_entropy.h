// The cross-entropy of one logit: the same formula on the CPU, on the GPU, and in the evaluation
// metrics.
//
// Computed in double: the loss layer has only a few elements per sample, and every gradient depends
// on its accuracy.
#pragma once

#include <cmath>

#include "common/base/host_device.h"

namespace cistern {

CISTERN_HOST_DEVICE inline double SigmoidOf(double x) {
  return 1.0 / (1.0 + exp(-x));
}

// -log of the probability that sigmoid(x) assigns to the label, in a form that cannot overflow.
CISTERN_HOST_DEVICE inline double LogLossOf(double x, double label) {
  return (x > 0 ? x : 0) - x * label + log1p(exp(-fabs(x)));
}

// The entropy in nats of labels with this share of positives: the least log loss of a constant.
inline double EntropyOf(double positives) {
  if (positives <= 0 || positives >= 1) return 0;
  return -positives * std::log(positives) - (1 - positives) * std::log1p(-positives);
}

// The same where a positive label counts `weight` times, and the sum is divided by the number of
// labels.
inline double LossOfConstant(double positives, double weight) {
  const double total = weight * positives + (1 - positives);
  return total * EntropyOf(weight * positives / total);
}

// The logit of class 1 out of two: softmax over two logits is the sigmoid of their difference.
CISTERN_HOST_DEVICE inline double MarginOf(const float* logits) {
  return static_cast<double>(logits[1]) - static_cast<double>(logits[0]);
}

}  // namespace cistern
