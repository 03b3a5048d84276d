// Checks labels against the range that the model's losses require, and weights of samples.
#pragma once

#include <memory>

#include "common/base/status.h"
#include "worker/data/format/data_set.h"

namespace cistern::data {

// Where labels may be missing (HugeCTR's MultiCrossEntropyLoss), a value below this means no label.
inline constexpr float kNoLabelBelow = -0.5f;

// Weights beyond this are rather a time or an id, and the exact sums of metrics have no room for
// them (worker/model/metric/exact_sum.h).
inline constexpr float kSampleWeightMax = 1e9f;

inline bool IsSampleWeight(double x) {
  return x >= 0 && x <= static_cast<double>(kSampleWeightMax);
}

// Wraps `reader` and refuses labels that data.labels does not allow: kOutOfRange names file,
// record, label and the fix. A cross entropy treats a label as the probability of a click. With a
// label of 2 or 5 (stars, counts, an id in the wrong column) the loss has no minimum, and training
// silently produces meaningless weights. Likewise refuses weights that are not in [0,
// kSampleWeightMax], if data.shape.weighted.
std::unique_ptr<SampleReader> OpenWithLabels(std::unique_ptr<SampleReader> reader,
                                             const DataSetOptions& data);

}  // namespace cistern::data
