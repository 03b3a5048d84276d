// Finds slots whose values are numbers with a fraction: each number becomes a key of its own, which
// is hardly ever meant.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "worker/data/recipe/recipe.h"

namespace cistern::data {

// Threads: one at a time.
class NumberSlots {
 public:
  // places: of the slots' fields.
  void Add(const std::vector<Recipe::Slot>& slots, const std::vector<absl::string_view>& fields,
           const std::vector<std::vector<size_t>>& places);
  // The columns of slots with at least a hundred values, half or more of which have a fraction.
  // Slots of buckets and crosses do not count.
  std::vector<std::string> Columns(const std::vector<Recipe::Slot>& slots) const;

 private:
  struct Seen {
    uint64_t values = 0, with_fraction = 0;
  };
  std::vector<Seen> seen_;  // by slot
};

}  // namespace cistern::data
