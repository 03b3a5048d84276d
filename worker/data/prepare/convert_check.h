// Checks the options of a conversion, and fills in those that depend on others.
#pragma once

#include "common/base/status.h"
#include "worker/data/prepare/convert.h"

namespace cistern::data {

// kInvalidArgument: options that contradict each other, or an output that would replace an input.
absl::Status CheckConversion(const ConvertOptions& options);

// Replaces kAuto, ranges of columns and what follows from the format. kInvalidArgument: not a
// range.
absl::StatusOr<ConvertOptions> ResolveConversion(ConvertOptions options);

// Whether values are counted, or known from a file.
bool WantsVocabulary(const ConvertOptions& options);

}  // namespace cistern::data
