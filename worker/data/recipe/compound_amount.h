// Amounts that are written in several parts: "1h 23m", "0:12:31", "5 ft 11 in", "3 lb 5 oz".
#pragma once

#include <optional>

#include "absl/strings/string_view.h"
#include "worker/data/recipe/number_unit.h"

namespace cistern::data {

struct CompoundAmount {
  Scale::Family family;
  double amount;    // in the family's base unit: seconds, meters, grams
  bool is_certain;  // false: "12:31", which is a time of day as well
};

// Durations ("1h 23m", "2 days, 3 hours", "2h30", ISO's "P1DT2H"), clocks ("0:12:31.5", "12:31",
// "-1 days +02:00:00" of pandas), lengths ("5 ft 11 in", 5'11") and masses. nullopt: another text,
// or one whose parts do not become smaller, each less than one of the part before it.
std::optional<CompoundAmount> ReadCompoundAmount(absl::string_view text);

}  // namespace cistern::data
