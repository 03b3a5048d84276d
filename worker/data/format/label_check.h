// What labels may be, for the losses that ask for it.
#pragma once

#include <memory>

#include "common/base/status.h"
#include "worker/data/format/data_set.h"

namespace cistern {

// Labels below this are none at all, where labels may be missing (HugeCTR's MultiCrossEntropyLoss).
inline constexpr float kNoLabelBelow = -0.5f;

// `reader`, but refusing a label that data.labels does not allow: kOutOfRange with file, record,
// label and cure. A cross entropy takes a label for the probability of a click: with 2 or 5 (stars,
// counts, an id in the label's place) it has no least value, and trains without a word to weights
// that mean nothing.
std::unique_ptr<SampleReader> OpenWithLabels(std::unique_ptr<SampleReader> reader,
                                             const DataSetOptions& data);

}  // namespace cistern
