// A number as people write it, taken apart: sign, unit before it, number, unit behind it.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace cistern::data {

// A text in parts: "-$1,234.5 per day" is negative, "$", "1,234.5", "per day".
struct NumberParts {
  bool negative = false;
  bool mixed = false;  // a whole number and a fraction: 10 3/8
  std::string before, number, behind;
};

// Takes a text with one number apart; false for others. Digits and signs of typography become those
// of ASCII, quotes and calls around the number (Decimal('12.5')), words that say how exact it is
// and "26.-" for no cents do not count, and "10 3/8" is 10.375. The number keeps its separators.
bool SplitNumber(absl::string_view field, NumberParts* parts);

// The two ends of a range: "10-20", "$18 to $24", "3..5", of which neither is negative or begins
// with 0, as the month in 05-17 does; or of an interval: "(20, 30]", "(60, inf]" (60 twice). False
// for other texts.
bool SplitRange(absl::string_view field, std::string* low, std::string* high);

}  // namespace cistern::data
