// How people write the numbers of a column: "1.234,50 €", "12 %", "(7)", "-" for none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace cistern::data {

// The form of all numbers of a column that are not plain decimal numbers.
struct NumberForm {
  char decimal = '.';  // or ','
  // What separates thousands: ',', '.', '\'', '_' or ' ', which stands for any space; 0: nothing.
  char group = 0;
  std::string unit = {};               // before or behind the number
  std::vector<std::string> none = {};  // texts that stand for no number (-, -9999), sorted

  bool operator==(const NumberForm&) const = default;
};

// Rewrites a text of the form as a plain number: "-7", "1234.50"; false for other text. A minus
// sign may be that of typography, and a number in parentheses is negative, as bookkeepers write it.
// Quotes around a number do not count, nor do words and signs of an estimate or a bound
// ("approx. 7", "7+"); a range ("5-9") is its middle. Times on a clock (0:12:31, pandas' "1 days
// 02:00:00") are seconds, and so are durations ("1h 23m", "PT83M"). Multiples count as such: "1.5M"
// and "$2k", "3 KB" if the unit is B, "2 min" if it is s.
bool PlainNumber(absl::string_view text, const NumberForm& form, std::string* plain);

// A field as ReadNumber and IsMissing expect it: the plain number; empty for a text of `none`, or a
// number whose plain text is in it; any other text as it is. buffer: may hold the result.
absl::string_view PlainField(absl::string_view field, const NumberForm& form, std::string* buffer);

// The form of the numbers among texts, most of which are numbers (the rest is of a few kinds, such
// as "-"). nullopt: there is none, or more than one (5 kg and 5 lb). Units that are multiples of
// each other (512 KB and 3 MB, 15 ms and 2 s, 880 and 2.2k) are one: B, s, none.
//
// Codes are no numbers: u17, 2024-05, 10.0.0.1, times of day (16:27), and lists of codes such as
// "101 205"; ranges whose ends do not rise together. Thousands are believed if some group of three
// begins with 0, as a tenth of them does; with points, if 930 and 1.040 occur, but no 1.04 or
// 930.000, which is why a column of plain numbers may have this form.
std::optional<NumberForm> FindNumberForm(absl::Span<const std::string> texts);

// Kinds of texts among numbers, at most, that stand for no number.
inline constexpr size_t kMaxNoneTexts = 8;

}  // namespace cistern::data
