// Lists of column names as people type them.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"

namespace cistern {

// Expands ranges: {"id", "C1..C3"} becomes {"id", "C1", "C2", "C3"}. kInvalidArgument for a range
// whose ends do not share the text before their numbers, or run backwards.
absl::StatusOr<std::vector<std::string>> ExpandColumns(const std::vector<std::string>& items);

}  // namespace cistern
