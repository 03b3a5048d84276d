// Parses lists of column names from flags.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/recipe/text_format.h"

namespace cistern::data {

// Expands ranges: {"id", "C1..C3"} becomes {"id", "C1", "C2", "C3"}. kInvalidArgument: the ends of
// a range have different text before their numbers, or the range is descending.
absl::StatusOr<std::vector<std::string>> ExpandColumns(const std::vector<std::string>& items);

// The columns of every file of the format, or, if it has none of its own, `given`; expanded.
absl::StatusOr<std::vector<std::string>> ColumnsOf(const TextFormatEntry& format,
                                                   const std::vector<std::string>& given);

// Replaces the name of an object or struct, which is not a column itself, by its members: "user" by
// "user.id" and "user.os". Other names stay as they are.
std::vector<std::string> WithMembers(const std::vector<std::string>& names,
                                     const std::vector<std::string>& columns);

}  // namespace cistern::data
