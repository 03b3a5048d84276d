#include "worker/data/prepare/criteo_line.h"
#include "common/base/shown_text.h"

#include <algorithm>
#include <charconv>
#include <string>

namespace cistern::data {
namespace {

// Parses a number; empty text is 0. false: not a number.
template <typename Number>
bool ParseNumber(absl::string_view text, int base, Number* number) {
  *number = 0;
  if (text.empty()) return true;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number, base);
  return error == std::errc() && end == text.data() + text.size();
}

absl::Status ParseField(absl::string_view text, size_t field, CriteoLine* line) {
  if (field > kCriteoDense) {
    const size_t column = field - 1 - kCriteoDense;
    if (ParseNumber(text, 16, &line->values[column])) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("column C", column + 1, " '", ShownText(text, 40),
                                            "' is not a hexadecimal number"));
  }
  if (ParseNumber(text, 10, field == 0 ? &line->label : &line->dense[field - 1])) {
    if (field > 0 || line->label == 0 || line->label == 1) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat("the label is ", line->label, "; a Criteo row begins with 0 or 1"));
  }
  const std::string name = field == 0 ? "the label" : absl::StrCat("column I", field);
  return absl::DataLossError(
      absl::StrCat(name, " '", ShownText(text, 40), "' is not a whole number"));
}

}  // namespace

absl::Status ParseCriteoLine(absl::string_view text, CriteoLine* line) {
  size_t place = 0;
  for (size_t field = 0; field < kCriteoFields; ++field) {
    if (place > text.size()) {
      return absl::DataLossError(absl::StrCat("has ", field, " fields; a Criteo row has ",
                                              kCriteoFields, ", separated by tabs"));
    }
    const size_t end = std::min(text.find('\t', place), text.size());
    CISTERN_RETURN_IF_ERROR(ParseField(text.substr(place, end - place), field, line));
    place = end + 1;
  }
  if (place <= text.size()) {
    return absl::DataLossError(
        absl::StrCat("has more fields than the ", kCriteoFields, " of a Criteo row"));
  }
  return absl::OkStatus();
}

}  // namespace cistern::data
