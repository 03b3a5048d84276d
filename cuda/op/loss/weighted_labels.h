// The labels of a loss, the weights of their samples and of the positive ones, and what is known of
// their odds.
#pragma once

#include <cstddef>

#include "common/base/host_device.h"

namespace cistern::op {

// Converts from labels alone: every weight is 1 then, and a loss has the bits of one that knows no
// weights.
struct WeightedLabels {
  WeightedLabels(const float* labels) : values(labels) {}
  // sample_weights: [count / labels_num], finite and at least 0; null: all are 1. labels_num: of a
  // sample.
  WeightedLabels(const float* labels, const float* sample_weights, size_t labels_num)
      : values(labels), weights(sample_weights), labels_of_sample(labels_num) {}

  // With these two, the loss of label i is WeightAt(i, label) * bce(x + logit_offset,
  // TargetOf(label)). label: its value, from 0 to 1; TwoClassLoss rounds it first.
  CISTERN_HOST_DEVICE double WeightAt(size_t i, double label) const {
    const double of_sample =
        weights == nullptr ? 1.0 : static_cast<double>(weights[i / labels_of_sample]);
    return positive_weight == 1 ? of_sample : of_sample * (positive_weight * label + (1 - label));
  }
  CISTERN_HOST_DEVICE double TargetOf(double label) const {
    if (positive_weight == 1) return label;
    const double positive = positive_weight * label;
    return positive / (positive + (1 - label));
  }

  const float* values;  // [count]
  const float* weights = nullptr;
  size_t labels_of_sample = 1;
  // The part of the loss that a label's positive share causes counts so many times: `pos_weight` of
  // PyTorch's BCEWithLogitsLoss. Above 0.
  double positive_weight = 1;
  // Added to each logit: the log of how much larger the odds are in this data than where the
  // model's predictions are used. A prior that is known moves no weight (King and Zeng 2001).
  double logit_offset = 0;
};

}  // namespace cistern::op
