// The text form of predictions, as `cistern predict` writes it.
#pragma once

#include <string>

#include "absl/types/span.h"

namespace cistern::data {

// Appends a line "label<TAB>prediction" per sample, predictions with 9 significant digits, from
// which the same float is read back. With several labels a line holds one pair per label, separated
// by tabs.
//
// labels, predictions: [n, label_dim].
void AppendPredictionLines(absl::Span<const float> labels, absl::Span<const float> predictions,
                           size_t label_dim, std::string* text);

}  // namespace cistern::data
