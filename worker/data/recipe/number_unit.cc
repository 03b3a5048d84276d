#include "worker/data/recipe/number_unit.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"

namespace cistern::data {
namespace {

// Signs of currencies and the like, which may stand before a number.
constexpr const char* kUnitsBefore[] = {
    "$",   "\xe2\x82\xac", "\xc2\xa3", "\xc2\xa5",  "\xef\xbf\xa5", "\xe2\x82\xb9", "\xe2\x82\xbd",
    "US$", "R$",           "A$",       "C$",        "HK$",          "NT$",          "\xe2\x82\xa9",
    "Rs.", "Rs",           "kr",       "z\xc5\x82", "CHF",          "USD",          "EUR",
    "GBP", "JPY",          "CNY",      "RMB",       "INR",          "BRL",          "RUB",
    "#"};

// Names of one currency.
constexpr const char* kSameUnits[][3] = {{"$", "US$", "USD"},
                                         {"\xe2\x82\xac", "EUR", "EUR"},
                                         {"\xc2\xa3", "GBP", "GBP"},
                                         {"\xe2\x82\xb9", "INR", "Rs."},
                                         {"R$", "BRL", "BRL"}};

constexpr Scale kScales[] = {{Scale::kCount, "k", 1e3},
                             {Scale::kCount, "K", 1e3},
                             {Scale::kCount, "M", 1e6},
                             {Scale::kCount, "Mio", 1e6},
                             {Scale::kCount, "B", 1e9},
                             {Scale::kCount, "bn", 1e9},
                             {Scale::kBytes, "B", 1},
                             {Scale::kBytes, "bytes", 1},
                             {Scale::kBytes, "kB", 1e3},
                             {Scale::kBytes, "KB", 1e3},
                             {Scale::kBytes, "MB", 1e6},
                             {Scale::kBytes, "GB", 1e9},
                             {Scale::kBytes, "TB", 1e12},
                             {Scale::kBytes, "KiB", 1024},
                             {Scale::kBytes, "MiB", 1048576},
                             {Scale::kBytes, "GiB", 1 << 30},
                             {Scale::kTime, "us", 1e-6},
                             {Scale::kTime, "ms", 1e-3},
                             {Scale::kTime, "s", 1},
                             {Scale::kTime, "sec", 1},
                             {Scale::kTime, "min", 60},
                             {Scale::kTime, "mins", 60},
                             {Scale::kTime, "h", 3600},
                             {Scale::kTime, "hr", 3600},
                             {Scale::kTime, "hrs", 3600},
                             {Scale::kTime, "hours", 3600},
                             {Scale::kTime, "m", 60},
                             {Scale::kTime, "minute", 60},
                             {Scale::kTime, "minutes", 60},
                             {Scale::kTime, "hour", 3600},
                             {Scale::kTime, "secs", 1},
                             {Scale::kTime, "second", 1},
                             {Scale::kTime, "seconds", 1},
                             {Scale::kTime, "d", 86400},
                             {Scale::kTime, "day", 86400},
                             {Scale::kTime, "days", 86400},
                             {Scale::kTime, "week", 604800},
                             {Scale::kTime, "weeks", 604800},
                             // A year of the Julian calendar, and a twelfth of it.
                             {Scale::kTime, "month", 2629800},
                             {Scale::kTime, "months", 2629800},
                             {Scale::kTime, "yr", 31557600},
                             {Scale::kTime, "yrs", 31557600},
                             {Scale::kTime, "year", 31557600},
                             {Scale::kTime, "years", 31557600},
                             {Scale::kLength, "mm", 1e-3},
                             {Scale::kLength, "cm", 1e-2},
                             {Scale::kLength, "m", 1},
                             {Scale::kLength, "km", 1e3},
                             // International yard and pound, 1959.
                             {Scale::kLength, "mi", 1609.344},
                             {Scale::kLength, "yd", 0.9144},
                             {Scale::kLength, "ft", 0.3048},
                             {Scale::kLength, "'", 0.3048},
                             {Scale::kLength, "in", 0.0254},
                             {Scale::kLength, "\"", 0.0254},
                             {Scale::kMass, "lb", 453.59237},
                             {Scale::kMass, "lbs", 453.59237},
                             {Scale::kMass, "oz", 28.349523125},
                             {Scale::kVolume, "ml", 1e-3},
                             {Scale::kVolume, "mL", 1e-3},
                             {Scale::kVolume, "cl", 1e-2},
                             {Scale::kVolume, "l", 1},
                             {Scale::kVolume, "L", 1},
                             {Scale::kMass, "mg", 1e-3},
                             {Scale::kMass, "g", 1},
                             {Scale::kMass, "kg", 1e3},
                             {Scale::kCount, "thousand", 1e3},
                             {Scale::kCount, "million", 1e6},
                             {Scale::kCount, "billion", 1e9},
                             {Scale::kCount, "mn", 1e6},
                             {Scale::kCount, "\xe4\xb8\x87", 1e4},
                             {Scale::kCount, "\xe4\xba\xbf", 1e8}};

// Whether a unit is the plural of another: items, of item. Those of a letter or two are symbols.
bool IsPluralOf(absl::string_view plural, absl::string_view unit) {
  constexpr size_t kShortest = 3;
  return unit.size() >= kShortest && plural.size() == unit.size() + 1 && plural.back() == 's' &&
         absl::StartsWith(plural, unit);
}

}  // namespace

const Scale* ScaleOf(absl::string_view unit, Scale::Family family) {
  for (const Scale& scale : kScales) {
    if (scale.family == family && scale.unit == unit) return &scale;
  }
  return nullptr;
}

Scale::Family FamilyOf(absl::string_view unit) {
  for (const auto& [family, base] : kBaseUnits) {
    if (unit == base) return family;
  }
  return Scale::kCount;
}

bool AreSameUnits(absl::string_view a, absl::string_view b) {
  if (a == b || IsPluralOf(a, b) || IsPluralOf(b, a)) return true;
  return std::any_of(std::begin(kSameUnits), std::end(kSameUnits), [&](const auto& names) {
    return std::count(std::begin(names), std::end(names), a) > 0 &&
           std::count(std::begin(names), std::end(names), b) > 0;
  });
}

bool MayStandBefore(absl::string_view unit) {
  return std::any_of(std::begin(kUnitsBefore), std::end(kUnitsBefore),
                     [&](const char* known) { return absl::EqualsIgnoreCase(unit, known); });
}

}  // namespace cistern::data
