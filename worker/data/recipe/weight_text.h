// The weight of a sample as text.
#pragma once

#include "absl/strings/string_view.h"
#include "common/base/status.h"

namespace cistern::data {

// kDataLoss: not a number; kOutOfRange: below 0, above kSampleWeightMax (label_check.h), infinite
// or nan.
absl::StatusOr<float> ReadWeight(absl::string_view field);

}  // namespace cistern::data
