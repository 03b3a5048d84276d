#include "worker/data/prepare/number_slots.h"

#include <cmath>

#include "worker/data/recipe/value_text.h"

namespace cistern::data {

void NumberSlots::Add(const std::vector<Recipe::Slot>& slots,
                      const std::vector<absl::string_view>& fields,
                      const std::vector<std::vector<size_t>>& places) {
  seen_.resize(slots.size());
  for (size_t slot = 0; slot < slots.size(); ++slot) {
    if (slots[slot].bucket || !slots[slot].cross.empty()) continue;
    const absl::string_view field = fields[places[slot].front()];
    if (field.empty()) continue;
    double number = 0;
    ++seen_[slot].values;
    seen_[slot].with_fraction +=
        ReadNumber(field, &number) == NumberKind::kFinite && number != std::floor(number);
  }
}

std::vector<std::string> NumberSlots::Columns(const std::vector<Recipe::Slot>& slots) const {
  constexpr uint64_t kMinValues = 100;
  std::vector<std::string> columns;
  for (size_t slot = 0; slot < seen_.size(); ++slot) {
    const Seen& seen = seen_[slot];
    if (seen.values < kMinValues || 2 * seen.with_fraction < seen.values) continue;
    columns.push_back(slots[slot].column);
  }
  return columns;
}

}  // namespace cistern::data
