#include "worker/data/recipe/compound_amount.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "worker/data/recipe/value_text.h"

namespace cistern::data {
namespace {

// Removes digits, and a fraction, from the front of a text.
bool ConsumeAmount(absl::string_view* text, double* amount) {
  const size_t end = std::min(text->find_first_not_of("0123456789."), text->size());
  if (end == 0 || !absl::SimpleAtod(text->substr(0, end), amount)) return false;
  text->remove_prefix(end);
  return true;
}

// The amount of a text such as "1h 23m" or "5 ft 11 in" in the base unit of the family: several
// amounts of units, each smaller than the one before it. After hours, a number alone is minutes.
std::optional<double> AmountOf(absl::string_view text, Scale::Family family) {
  double last = 1e99, sum = 0;
  size_t parts = 0;
  while (!text.empty()) {
    double amount = 0;
    if (!ConsumeAmount(&text, &amount)) return std::nullopt;
    text = absl::StripLeadingAsciiWhitespace(text);
    const size_t end = std::min(text.find_first_of("0123456789 ,"), text.size());
    absl::string_view unit = text.substr(0, end);
    text = absl::StripLeadingAsciiWhitespace(text.substr(end));
    if (unit.empty() && family == Scale::kTime && last == 3600) unit = "min";
    const Scale* const scale = ScaleOf(unit, family);
    if (scale == nullptr || scale->factor >= last) return std::nullopt;
    // 11 inches are less than the foot before them.
    if (parts > 0 && amount * scale->factor >= last) return std::nullopt;
    sum += amount * scale->factor;
    last = scale->factor;
    ++parts;
    if (absl::ConsumePrefix(&text, ",") || absl::ConsumePrefix(&text, "and ")) {
      text = absl::StripLeadingAsciiWhitespace(text);
    }
  }
  if (parts < 2) return std::nullopt;
  return sum;
}

// ISO's "P1DT2H" and "PT83M" in seconds. Months have no length.
std::optional<double> IsoSeconds(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "P")) return std::nullopt;
  if (absl::StrContains(text.substr(0, text.find('T')), 'M')) return std::nullopt;
  double last = 1e99, sum = 0;
  while (!text.empty()) {
    absl::ConsumePrefix(&text, "T");
    double amount = 0;
    if (!ConsumeAmount(&text, &amount) || text.empty()) return std::nullopt;
    const std::string unit(1, absl::ascii_tolower(static_cast<unsigned char>(text[0])));
    const Scale* const scale = ScaleOf(unit, Scale::kTime);
    if (scale == nullptr || scale->factor >= last) return std::nullopt;
    sum += amount * scale->factor;
    last = scale->factor;
    text.remove_prefix(1);
  }
  if (last == 1e99) return std::nullopt;
  return sum;
}

// "0:12:31.5", "12:31.5" (minutes and seconds) and "-1 days +02:00:00" of pandas in seconds.
std::optional<CompoundAmount> OnClock(absl::string_view text) {
  double days = 0;
  const size_t word = text.find(" day");
  if (word != absl::string_view::npos) {
    if (!IsInteger(text.substr(0, word)) || !absl::SimpleAtod(text.substr(0, word), &days)) {
      return std::nullopt;
    }
    text.remove_prefix(word + 4);
    absl::ConsumePrefix(&text, "s");
    absl::ConsumePrefix(&text, ",");
    text = absl::StripLeadingAsciiWhitespace(text);
    absl::ConsumePrefix(&text, "+");
  }
  const std::vector<absl::string_view> fields = absl::StrSplit(text, ':');
  const size_t parts = fields.size();
  if (parts < 2 || parts > 3) return std::nullopt;
  double clock = 0;
  for (size_t i = 0; i < parts; ++i) {
    const absl::string_view whole = fields[i].substr(0, fields[i].find('.'));
    const bool last = i + 1 == parts;
    const size_t digits_most = i == 0 ? 4 : 2, digits_least = i == 0 ? 1 : 2;
    double x = 0;
    if (whole.size() < digits_least || whole.size() > digits_most) return std::nullopt;
    if (fields[i].find_first_not_of("0123456789.") != absl::string_view::npos) return std::nullopt;
    if (!last && whole.size() != fields[i].size()) return std::nullopt;
    // 59.97 seconds may have become 60.0.
    if (!absl::SimpleAtod(fields[i], &x) || (i > 0 && x >= 60 && fields[i] != "60.0")) {
      return std::nullopt;
    }
    clock = clock * 60 + x;
  }
  const bool is_certain = parts == 3 || absl::StrContains(text, '.');
  return CompoundAmount{Scale::kTime, days * 86400 + clock, is_certain};
}

}  // namespace

std::optional<CompoundAmount> ReadCompoundAmount(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (const std::optional<double> seconds = IsoSeconds(text)) {
    return CompoundAmount{Scale::kTime, *seconds, true};
  }
  for (const Scale::Family family : {Scale::kTime, Scale::kLength, Scale::kMass}) {
    if (const std::optional<double> amount = AmountOf(text, family)) {
      return CompoundAmount{family, *amount, true};
    }
  }
  return OnClock(text);
}

}  // namespace cistern::data
