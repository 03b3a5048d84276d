// Parses a line of Criteo's logs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/base/status.h"

namespace cistern::data {

inline constexpr size_t kCriteoDense = 13, kCriteoSparse = 26;
inline constexpr size_t kCriteoFields = 1 + kCriteoDense + kCriteoSparse;

// A label, 13 whole numbers and 26 values in hexadecimal, separated by tabs; an empty field is 0.
struct CriteoLine {
  int64_t label = 0;
  std::array<int64_t, kCriteoDense> dense;
  std::array<uint64_t, kCriteoSparse> values;
};

// text: without the line end. kDataLoss: too few or too many fields, or a field that is not a
// number, with its column.
absl::Status ParseCriteoLine(absl::string_view text, CriteoLine* line);

}  // namespace cistern::data
