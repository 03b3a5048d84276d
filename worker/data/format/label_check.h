// Checks labels against the range that the model's losses require.
#pragma once

#include <memory>

#include "common/base/status.h"
#include "worker/data/format/data_set.h"

namespace cistern {

// Where labels may be missing (HugeCTR's MultiCrossEntropyLoss), a value below this means no label.
inline constexpr float kNoLabelBelow = -0.5f;

// Wraps `reader` and refuses labels that data.labels does not allow: kOutOfRange names file,
// record, label and the fix. A cross entropy treats a label as the probability of a click. With a
// label of 2 or 5 (stars, counts, an id in the wrong column) the loss has no minimum, and training
// silently produces meaningless weights.
std::unique_ptr<SampleReader> OpenWithLabels(std::unique_ptr<SampleReader> reader,
                                             const DataSetOptions& data);

}  // namespace cistern
