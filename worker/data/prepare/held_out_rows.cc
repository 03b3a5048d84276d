#include "worker/data/prepare/table_plan.h"

namespace cistern::data {

bool HeldOutRows::Contains(uint64_t row, const std::vector<absl::string_view>& fields) const {
  if (time_column) {
    if (*time_column >= fields.size()) return false;
    if (TimeOrder(fields[*time_column], time_form).value_or(since - 1) < since) return false;
    if (one_in == 1) return true;
  }
  constexpr uint64_t kOneIn = 10;
  // SplitMix64 (Steele et al. 2014): neighbours are independent of each other.
  uint64_t hash = (by_content ? HashOfRow(fields) : row) + 0x9E3779B97F4A7C15;
  hash = (hash ^ hash >> 30) * 0xBF58476D1CE4E5B9;
  hash = (hash ^ hash >> 27) * 0x94D049BB133111EB;
  return (hash ^ hash >> 31) % (time_column ? one_in : kOneIn) == 0;
}

}  // namespace cistern::data
