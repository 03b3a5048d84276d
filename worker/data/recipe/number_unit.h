// The units of numbers that people write: currencies, and units that are multiples of each other.
#pragma once

#include <utility>

#include "absl/strings/string_view.h"

namespace cistern::data {

// What a number is multiplied by: 1.5M is 1500000, 3 KB are 3000, 2 min are 120.
struct Scale {
  enum Family { kCount, kBytes, kTime, kLength, kMass, kVolume, kFamilies } family;
  const char* unit;
  double factor;
};

// Null: the unit is none of the family.
const Scale* ScaleOf(absl::string_view unit, Scale::Family family);

// The units of forms whose numbers have several that are multiples of each other.
inline constexpr std::pair<Scale::Family, const char*> kBaseUnits[] = {{Scale::kBytes, "B"},
                                                                       {Scale::kTime, "s"},
                                                                       {Scale::kLength, "m"},
                                                                       {Scale::kMass, "g"},
                                                                       {Scale::kVolume, "l"}};

// The family whose base unit it is; of any other, such as none, counts. B alone is a billion.
Scale::Family FamilyOf(absl::string_view unit);

// Whether two units are one, as $ and USD are, and item and items; "" is one with itself alone.
bool AreSameUnits(absl::string_view a, absl::string_view b);

// Whether a unit may stand before its number, in any case: the sign of a currency and the like.
bool MayStandBefore(absl::string_view unit);

}  // namespace cistern::data
