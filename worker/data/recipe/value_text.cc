#include "worker/data/recipe/value_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace cistern::data {
namespace {

constexpr size_t kMaxDigits = 400;  // of an exponent's expansion; a double has at most 309

bool IsDigits(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isdigit(c); });
}

// The parts of a decimal number: sign, digits before and after the point, exponent.
struct Decimal {
  bool negative = false;
  absl::string_view whole, fraction;
  int exponent = 0;
  bool has_exponent = false;
};

bool Split(absl::string_view text, Decimal* parts) {
  text = absl::StripAsciiWhitespace(text);
  parts->negative = absl::ConsumePrefix(&text, "-");
  if (!parts->negative) absl::ConsumePrefix(&text, "+");
  const size_t mark = text.find_first_of("eE");
  if (mark != absl::string_view::npos) {
    parts->has_exponent = true;
    if (!absl::SimpleAtoi(text.substr(mark + 1), &parts->exponent)) return false;
    text = text.substr(0, mark);
  }
  const size_t point = std::min(text.find('.'), text.size());
  parts->whole = text.substr(0, point);
  parts->fraction = text.substr(std::min(point + 1, text.size()));
  return !parts->whole.empty() && IsDigits(parts->whole) && IsDigits(parts->fraction);
}

bool IsZeros(absl::string_view text) {
  return text.find_first_not_of('0') == absl::string_view::npos;
}

// plain: gets an integer whose thousands are all separated by commas or apostrophes (1,047).
bool JoinThousands(absl::string_view text, std::string* plain) {
  constexpr size_t kGroup = 3;
  const size_t first = text.find_first_of(",'");
  if (first == absl::string_view::npos) return false;
  const absl::string_view end = text.substr(0, text.find('.'));
  const char mark = text[first];
  const std::vector<absl::string_view> groups = absl::StrSplit(end, mark);
  absl::string_view begin = groups[0];
  if (!begin.empty() && (begin[0] == '-' || begin[0] == '+')) begin.remove_prefix(1);
  if (begin.empty() || begin.size() > kGroup || begin[0] == '0' || !IsDigits(begin)) return false;
  for (size_t i = 1; i < groups.size(); ++i) {
    if (groups[i].size() != kGroup || !IsDigits(groups[i])) return false;
  }
  *plain = absl::StrCat(absl::StrJoin(groups, ""), text.substr(end.size()));
  return true;
}

}  // namespace

std::string WithPlainSpaces(absl::string_view text) {
  std::string plain = absl::StrReplaceAll(text, {{"\xc2\xa0", " "},
                                                 {"\xe2\x80\x89", " "},
                                                 {"\xe2\x80\xaf", " "},
                                                 {"\xe2\x80\x8b", ""},
                                                 {"\xef\xbb\xbf", ""}});
  absl::StripAsciiWhitespace(&plain);
  return plain;
}

NumberKind ReadNumber(absl::string_view text, double* value) {
  text = absl::StripAsciiWhitespace(text);
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  const char* const end = text.data() + text.size();
  double x = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, x);
  if (stop != end || error == std::errc::invalid_argument) return NumberKind::kNone;
  // Beyond the range of a double: 0 or infinity.
  if (error == std::errc::result_out_of_range && !absl::SimpleAtod(text, &x)) {
    return NumberKind::kNone;
  }
  if (std::isnan(x)) return NumberKind::kNan;
  if (std::isinf(x)) return NumberKind::kInfinite;
  *value = x;
  return NumberKind::kFinite;
}

bool IsFiniteNumber(absl::string_view text) {
  double value = 0;
  return ReadNumber(text, &value) == NumberKind::kFinite;
}

bool IsInteger(absl::string_view text) {
  Decimal parts;
  if (!Split(text, &parts)) return false;
  if (!parts.has_exponent) return IsZeros(parts.fraction);
  std::string digits;
  return IntegerDigits(text, &digits);
}

bool IntegerDigits(absl::string_view text, std::string* digits) {
  Decimal parts;
  if (!Split(text, &parts)) return false;
  std::string whole(parts.whole), fraction(parts.fraction);
  if (parts.has_exponent) {
    if (std::abs(parts.exponent) > static_cast<int>(kMaxDigits)) return false;
    const size_t shift = static_cast<size_t>(std::abs(parts.exponent));
    if (parts.exponent >= 0) {
      if (fraction.size() < shift) fraction.resize(shift, '0');
      whole += fraction.substr(0, shift);
      fraction.erase(0, shift);
    } else {
      if (whole.size() < shift) whole.insert(0, shift - whole.size(), '0');
      fraction.insert(0, whole.substr(whole.size() - shift));
      whole.erase(whole.size() - shift);
    }
    whole.erase(0, std::min(whole.find_first_not_of('0'), whole.size()));
    if (whole.empty()) whole = "0";
  }
  if (!IsZeros(fraction)) return false;
  *digits = absl::StrCat(parts.negative && !IsZeros(whole) ? "-" : "", whole);
  return true;
}

bool IsExponentCode(absl::string_view text, size_t* digits) {
  text = absl::StripAsciiWhitespace(text);
  *digits = text.find_first_of("eE");
  if (*digits == absl::string_view::npos || *digits == 0) return false;
  const absl::string_view exponent = text.substr(*digits + 1);
  return IsDigits(text.substr(0, *digits)) && !exponent.empty() && IsDigits(exponent);
}

bool IsTruth(absl::string_view text) {
  return absl::EqualsIgnoreCase(text, "true") || absl::EqualsIgnoreCase(text, "false");
}

bool IntegerCode(absl::string_view text, std::string* digits) {
  if (!IsTruth(text)) {
    if (IntegerDigits(text, digits)) return true;
    std::string plain;
    return JoinThousands(absl::StripAsciiWhitespace(text), &plain) && IntegerDigits(plain, digits);
  }
  *digits = text.size() == 4 ? "1" : "0";
  return true;
}

const std::vector<std::string>& UsualMissingTexts() {
  static const auto* const texts = new std::vector<std::string>{
      " ",   "#N/A",    "#NA", "(null)", "-NaN", "-nan", "<NA>",     "?",
      "N/A", "NA",      "NAN", "NULL",   "NaN",  "NaT",  "None",     "Null",
      "\\N", "missing", "n/a", "nan",    "nil",  "null", "undefined"};
  return *texts;
}

bool IsUsuallyMissing(absl::string_view text) {
  if (text.empty() || absl::StripAsciiWhitespace(text).empty()) return true;
  const std::vector<std::string>& texts = UsualMissingTexts();
  return std::binary_search(texts.begin(), texts.end(), text);
}

bool StandsForNoNumber(absl::string_view text) {
  if (IsUsuallyMissing(text)) return true;
  static constexpr absl::string_view kTexts[] = {"-",
                                                 "--",
                                                 "---",
                                                 ".",
                                                 "..",
                                                 "/",
                                                 "*",
                                                 "none",
                                                 "null",
                                                 "nan",
                                                 "na",
                                                 "n.a.",
                                                 "n/a",
                                                 "#n/a",
                                                 "nil",
                                                 "missing",
                                                 "unknown",
                                                 "unk",
                                                 "empty",
                                                 "blank",
                                                 "(blank)",
                                                 "(none)",
                                                 "<null>",
                                                 "<none>",
                                                 "nat",
                                                 "#value!",
                                                 "#div/0!",
                                                 "#ref!",
                                                 "#num!",
                                                 "#name?",
                                                 "#null!",
                                                 "undefined",
                                                 "not available",
                                                 "not applicable",
                                                 "[]",
                                                 "{}",
                                                 "\"\"",
                                                 "''",
                                                 "\\\\n",
                                                 "\xe2\x80\x94",
                                                 "\xe2\x80\x93",
                                                 "\xe6\x9c\xaa\xe7\x9f\xa5",
                                                 "\xe6\x97\xa0"};
  const std::string lower = absl::AsciiStrToLower(absl::StripAsciiWhitespace(text));
  return std::find(std::begin(kTexts), std::end(kTexts), lower) != std::end(kTexts);
}

std::string LabelMeaning(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  // b'x' of Python, ="x" of a spreadsheet, and quotes that were written twice.
  for (const char* const mark : {"b'", "=\""}) {
    if (text.size() >= 4 && absl::StartsWith(text, mark)) text.remove_prefix(1);
  }
  for (const char quote : {'\'', '"'}) {
    if (text.size() >= 3 && text.front() == quote && text.back() == quote) {
      text = absl::StripAsciiWhitespace(text.substr(1, text.size() - 2));
    }
  }
  double number = 0;
  if (ReadNumber(text, &number) != NumberKind::kFinite) {
    if (text.size() > 1) absl::ConsumeSuffix(&text, ".");  // ">50K." in one of UCI's files
    return absl::AsciiStrToLower(text);
  }
  std::string digits;
  if (!IntegerDigits(text, &digits)) return absl::StrFormat("%.17g", number);
  const size_t sign = absl::StartsWith(digits, "-") ? 1 : 0;
  const size_t first = std::min(digits.find_first_not_of('0', sign), digits.size() - 1);
  return digits.erase(sign, first - sign);
}

std::string TruthMeaning(absl::string_view text) {
  const std::string meaning = LabelMeaning(text);
  for (const char* const word : {"true", "t", "yes", "y"}) {
    if (meaning == word) return "1";
  }
  for (const char* const word : {"false", "f", "no", "n"}) {
    if (meaning == word) return "0";
  }
  return meaning;
}

char TruthOf(absl::Span<const std::string> texts) {
  char truth = 0;
  for (const std::string& text : texts) {
    const std::string meaning = TruthMeaning(text);
    if (meaning != "0" && meaning != "1") return 0;
    if (truth != 0 && truth != meaning[0]) return 0;
    truth = meaning[0];
  }
  return truth;
}

}  // namespace cistern::data
