// The spread of a column of numbers, and what lies far outside of it.
#pragma once

#include <optional>

#include "worker/data/prepare/table_profile.h"

namespace cistern {

struct NumberSpread {
  // Of the values without the sentinels: single values far from all others that occur again and
  // again, such as -9999 for "none".
  double min = 0, max = 0, mean = 0, skewness = 0;
  bool has_sentinel = false;
  // Numbers beyond them are outliers, which would be all that a standardized column shows. Not set:
  // there are none. In the logarithms of the numbers for a column that is cut in logarithms.
  std::optional<double> low, high;
  double farthest = 0;  // of the outliers
};

// Statistics of the sampled rows; without sentinels, those of all rows. logarithms: bounds of
// outliers among ln(1 + x).
NumberSpread SpreadOf(const TableProfile& profile, size_t column, bool logarithms);

}  // namespace cistern
