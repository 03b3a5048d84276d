// The cross-entropy of one logit, alike on the CPU, on a GPU, and in the metrics of an evaluation.
//
// In double: the loss layer has few elements a sample, and its accuracy is everyone's.
#pragma once

#include <cmath>

#include "common/base/host_device.h"

namespace cistern {

CISTERN_HOST_DEVICE inline double SigmoidOf(double x) {
  return 1.0 / (1.0 + exp(-x));
}

// -log of the probability that sigmoid(x) gives the label, in the form that cannot overflow.
CISTERN_HOST_DEVICE inline double LogLossOf(double x, double label) {
  return (x > 0 ? x : 0) - x * label + log1p(exp(-fabs(x)));
}

// Of class 1 of two: softmax over two logits is the sigmoid of their difference.
CISTERN_HOST_DEVICE inline double MarginOf(const float* logits) {
  return static_cast<double>(logits[1]) - static_cast<double>(logits[0]);
}

}  // namespace cistern
