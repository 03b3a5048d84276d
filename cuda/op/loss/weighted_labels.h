// The labels of a loss, and the weights of their samples.
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

  // The weight of label i.
  CISTERN_HOST_DEVICE double WeightAt(size_t i) const {
    return weights == nullptr ? 1.0 : static_cast<double>(weights[i / labels_of_sample]);
  }

  const float* values;  // [count]
  const float* weights = nullptr;
  size_t labels_of_sample = 1;
};

}  // namespace cistern::op
