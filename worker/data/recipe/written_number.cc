#include "worker/data/recipe/written_number.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "worker/data/recipe/value_text.h"

namespace cistern::data {
namespace {

constexpr size_t kMaxUnit = 12;  // bytes

// Words and signs that say how exact a number is, or that it is a bound, and not how large it is.
constexpr const char* kHedgesBefore[] = {"approximately",
                                         "approx.",
                                         "approx",
                                         "about",
                                         "around",
                                         "roughly",
                                         "almost",
                                         "nearly",
                                         "circa",
                                         "ca.",
                                         "more than",
                                         "less than",
                                         "fewer than",
                                         "over",
                                         "under",
                                         "above",
                                         "below",
                                         "up to",
                                         "at least",
                                         "at most",
                                         "\xe2\x89\x88",
                                         "~",
                                         "<=",
                                         "=",
                                         "starting at",
                                         "from",
                                         "as low as",
                                         "between",
                                         ">=",
                                         "<",
                                         ">",
                                         "\xe2\x89\xa4",
                                         "\xe2\x89\xa5"};
constexpr const char* kHedgesAfter[] = {"or more", "or less", "and over",     "and above",   "each",
                                        "ea.",     "approx.", "approx",       "(est.)",      "est.",
                                        "+",       "*",       "\xe2\x80\xa0", "\xe2\x80\xa1"};

bool IsNumberByte(char c) {
  return absl::ascii_isdigit(c) || c == '.' || c == ',' || c == '\'' || c == '_' || c == ' ';
}

// The argument of Decimal('12.5'), np.float64(12.5) and the like, which Python and MongoDB print;
// other texts stay.
absl::string_view Argument(absl::string_view text) {
  constexpr absl::string_view kCalls[] = {"Decimal",    "NumberDecimal", "NumberInt", "NumberLong",
                                          "BigDecimal", "float",         "int",       "tensor"};
  const size_t open = text.find('(');
  if (open == absl::string_view::npos || !absl::EndsWith(text, ")")) return text;
  const absl::string_view name = text.substr(0, open);
  const bool is_call = absl::StartsWith(name, "np.") || absl::StartsWith(name, "numpy.") ||
                       std::find(std::begin(kCalls), std::end(kCalls), name) != std::end(kCalls);
  return is_call ? text.substr(open + 1, text.size() - open - 2) : text;
}

// The text without the quotes of a program that wrote it twice: "12", ="12". '12 is a text to a
// spreadsheet.
absl::string_view Unquoted(absl::string_view text) {
  text = Argument(absl::StripAsciiWhitespace(text));
  if (absl::StartsWith(text, "=\"")) text.remove_prefix(1);
  const bool quoted = text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
                      text.back() == text.front();
  if (!quoted && text.size() > 1 && text.front() == '\'') return text.substr(1);
  return quoted ? text.substr(1, text.size() - 2) : text;
}

// Digits of other scripts become those of ASCII (Unicode's decimal digits, by script).
std::string WithPlainDigits(absl::string_view text) {
  constexpr std::pair<const char*, char> kZeros[] = {{"\xef\xbc", '\x90'},   // full-width
                                                     {"\xd9", '\xa0'},       // Arabic
                                                     {"\xdb", '\xb0'},       // Persian
                                                     {"\xe0\xa5", '\xa6'},   // Devanagari
                                                     {"\xe0\xa7", '\xa6'},   // Bengali
                                                     {"\xe0\xa9", '\xa6'},   // Gurmukhi
                                                     {"\xe0\xab", '\xa6'},   // Gujarati
                                                     {"\xe0\xaf", '\xa6'},   // Tamil
                                                     {"\xe0\xb1", '\xa6'},   // Telugu
                                                     {"\xe0\xb3", '\xa6'},   // Kannada
                                                     {"\xe0\xb5", '\xa6'},   // Malayalam
                                                     {"\xe0\xb9", '\x90'},   // Thai
                                                     {"\xe0\xbb", '\x90'},   // Lao
                                                     {"\xe1\x81", '\x80'},   // Burmese
                                                     {"\xe1\x9f", '\xa0'}};  // Khmer
  std::string plain;
  while (!text.empty()) {
    const bool found = std::any_of(std::begin(kZeros), std::end(kZeros), [&](const auto& zero) {
      const auto& [lead, first] = zero;
      const size_t size = absl::string_view(lead).size();
      if (!absl::StartsWith(text, lead) || text.size() == size) return false;
      const int digit = static_cast<unsigned char>(text[size]) - static_cast<unsigned char>(first);
      if (digit < 0 || digit > 9) return false;
      plain.push_back(static_cast<char>('0' + digit));
      text.remove_prefix(size + 1);
      return true;
    });
    if (found) continue;
    plain.push_back(text[0]);
    text.remove_prefix(1);
  }
  return plain;
}

bool IsDigitByte(char c) {
  return absl::ascii_isdigit(static_cast<unsigned char>(c));
}

// Where the digits begin that end at `end`, and where those end that begin at `begin`.
size_t BeginOfDigits(absl::string_view text, size_t end) {
  while (end > 0 && IsDigitByte(text[end - 1])) --end;
  return end;
}
size_t EndOfDigits(absl::string_view text, size_t begin) {
  while (begin < text.size() && IsDigitByte(text[begin])) ++begin;
  return begin;
}

// "10⅜" is "10 3/8", and the sign alone "0 3/8".
std::string WithoutFractionSign(absl::string_view text) {
  constexpr std::pair<const char*, const char*> kSigns[] = {
      {"\xc2\xbc", "1/4"},     {"\xc2\xbd", "1/2"},     {"\xc2\xbe", "3/4"},
      {"\xe2\x85\x93", "1/3"}, {"\xe2\x85\x94", "2/3"}, {"\xe2\x85\x95", "1/5"},
      {"\xe2\x85\x96", "2/5"}, {"\xe2\x85\x97", "3/5"}, {"\xe2\x85\x98", "4/5"},
      {"\xe2\x85\x99", "1/6"}, {"\xe2\x85\x9a", "5/6"}, {"\xe2\x85\x9b", "1/8"},
      {"\xe2\x85\x9c", "3/8"}, {"\xe2\x85\x9d", "5/8"}, {"\xe2\x85\x9e", "7/8"}};
  for (const auto& [sign, fraction] : kSigns) {
    const size_t at = text.find(sign);
    if (at == absl::string_view::npos) continue;
    const absl::string_view whole = absl::StripTrailingAsciiWhitespace(text.substr(0, at));
    const bool has_whole = BeginOfDigits(whole, whole.size()) < whole.size();
    return absl::StrCat(whole, has_whole ? " " : "0 ", fraction,
                        text.substr(at + absl::string_view(sign).size()));
  }
  return std::string(text);
}

// A whole number and a proper fraction as one number: "10 3/8", "10-3/8" and "10⅜" are "10.375".
// More digits than two are those of other things, such as dates.
std::string WithPlainFraction(absl::string_view given) {
  constexpr size_t kMaxFractionDigits = 2;
  const std::string text = WithoutFractionSign(given);
  const size_t slash = text.find('/');
  if (slash == std::string::npos) return text;
  const size_t top = BeginOfDigits(text, slash), bottom = EndOfDigits(text, slash + 1);
  if (top == 0 || (text[top - 1] != ' ' && text[top - 1] != '-')) return text;
  const size_t whole = BeginOfDigits(text, top - 1);
  const bool is_part = whole > 0 && absl::StrContains(".,/", text.substr(whole - 1, 1));
  const bool goes_on = bottom < text.size() && absl::StrContains(".,/", text.substr(bottom, 1));
  int numerator = 0, denominator = 0;
  if (whole == top - 1 || is_part || goes_on || slash - top > kMaxFractionDigits ||
      bottom - slash - 1 > kMaxFractionDigits ||
      !absl::SimpleAtoi(text.substr(top, slash - top), &numerator) ||
      !absl::SimpleAtoi(text.substr(slash + 1, bottom - slash - 1), &denominator) ||
      numerator >= denominator) {
    return text;
  }
  const std::string decimals =
      absl::StrFormat("%.6f", static_cast<double>(numerator) / denominator).substr(1);
  return absl::StrCat(text.substr(0, top - 1), decimals, text.substr(bottom));
}

// Spaces and digits of typography become plain ones, its minus a hyphen, and "x10^2" is an
// exponent.
std::string WithPlainSigns(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  const auto is_ascii = [](char c) { return absl::ascii_isascii(static_cast<unsigned char>(c)); };
  if (std::all_of(text.begin(), text.end(), is_ascii)) return std::string(text);
  return WithPlainDigits(absl::StrReplaceAll(WithPlainSpaces(text), {{"\xe2\x80\x99", "'"},
                                                                     {"\xe2\x88\x92", "-"},
                                                                     {"\xef\xbc\x8d", "-"},
                                                                     {"\xef\xbc\x8e", "."},
                                                                     {"\xef\xbc\x8c", ","},
                                                                     {"\xef\xbc\x85", "%"},
                                                                     {"\xd9\xab", "."},
                                                                     {"\xd9\xac", ","},
                                                                     {"\xc3\x97"
                                                                      "10^",
                                                                      "e"}}));
}

// Removes hedges from the front of what stands before a number: "approx. $" is "$". A word ends
// with a space or its point, so that ca in "ca12" is none.
void StripHedgesBefore(absl::string_view* text) {
  for (bool found = true; found;) {
    found = false;
    *text = absl::StripAsciiWhitespace(*text);
    for (const absl::string_view hedge : kHedgesBefore) {
      if (!absl::StartsWithIgnoreCase(*text, hedge)) continue;
      const absl::string_view rest = text->substr(hedge.size());
      if (!rest.empty() && absl::ascii_isalnum(static_cast<unsigned char>(rest[0]))) continue;
      *text = rest;
      found = true;
      break;
    }
  }
}

// Likewise behind it: "5 or more", "12+", "7*", "7[1]", and a tolerance, as in "5 +/- 0.2".
void StripHedgesAfter(absl::string_view* text) {
  for (const absl::string_view sign : {"\xc2\xb1", "+/-"}) {
    *text = text->substr(0, text->find(sign));
  }
  *text = absl::StripAsciiWhitespace(*text);
  const size_t open = text->rfind('[');
  if (absl::EndsWith(*text, "]") && open != absl::string_view::npos) *text = text->substr(0, open);
  *text = absl::StripTrailingAsciiWhitespace(*text);
  for (const absl::string_view hedge : kHedgesAfter) {
    if (absl::ConsumeSuffix(text, hedge)) break;
  }
}

// Whether what stands behind a number is what it is out of: "/5", "out of 100".
bool IsOutOf(absl::string_view behind) {
  constexpr size_t kMaxOutOfDigits = 6;
  bool found = false;
  for (const absl::string_view word : {"/", "out of ", "of "}) {
    found = found || absl::ConsumePrefix(&behind, word);
  }
  behind = absl::StripAsciiWhitespace(behind);
  return found && !behind.empty() && behind.size() <= kMaxOutOfDigits &&
         behind.find_first_not_of("0123456789") == absl::string_view::npos;
}

bool TakeSign(absl::string_view* text, bool* negative) {
  *text = absl::StripAsciiWhitespace(*text);
  if (absl::ConsumePrefix(text, "-")) return *negative = true;
  return absl::ConsumePrefix(text, "+");
}

// Removes what bookkeepers write for no cents: "26.-", "26,\u2013". A hyphen alone is a sign, as in
// "26-".
void StripNoCents(absl::string_view* number, absl::string_view* behind) {
  if (!absl::EndsWith(*number, ".") && !absl::EndsWith(*number, ",")) return;
  absl::string_view rest = *behind;
  for (const absl::string_view dash : {"--", "-", "\xe2\x80\x93", "\xe2\x80\x94"}) {
    if (!absl::ConsumePrefix(&rest, dash)) continue;
    number->remove_suffix(1);
    *behind = rest;
    return;
  }
}

// Whether a text is a half-open interval, as pandas.cut names its bins: "(20, 30]", "[20, 30)".
bool IsInterval(absl::string_view text) {
  return (absl::StartsWith(text, "(") && absl::EndsWith(text, "]")) ||
         (absl::StartsWith(text, "[") && absl::EndsWith(text, ")"));
}

// The ends of an interval. One without a bound has the other end twice.
bool SplitInterval(absl::string_view text, std::string* low, std::string* high) {
  text = text.substr(1, text.size() - 2);
  const size_t comma = text.find(',');
  if (comma == absl::string_view::npos) return false;
  *low = std::string(absl::StripAsciiWhitespace(text.substr(0, comma)));
  *high = std::string(absl::StripAsciiWhitespace(text.substr(comma + 1)));
  if (*low == "-inf") *low = *high;
  if (*high == "inf" || *high == "+inf") *high = *low;
  NumberParts parts;
  return SplitNumber(*low, &parts) && SplitNumber(*high, &parts);
}

}  // namespace

bool SplitNumber(absl::string_view field, NumberParts* parts) {
  if (IsInterval(field)) return false;
  const std::string signs = WithPlainSigns(Unquoted(field));
  const std::string plain = WithPlainFraction(signs);
  parts->mixed = plain != signs;
  absl::string_view text = plain;
  if (absl::StartsWith(text, "(") && absl::EndsWith(text, ")")) {
    text = text.substr(1, text.size() - 2);
    parts->negative = true;
  }
  bool negative = false;
  const bool has_sign = TakeSign(&text, &negative);
  const size_t digit = text.find_first_of("0123456789");
  if (digit == absl::string_view::npos) return false;
  // ".5" begins with its point.
  const size_t begin = digit > 0 && (text[digit - 1] == '.' || text[digit - 1] == ',') &&
                               (digit == 1 || text[digit - 2] == ' ')
                           ? digit - 1
                           : digit;
  absl::string_view before = text.substr(0, begin);
  StripHedgesBefore(&before);
  if (!has_sign && (absl::EndsWith(before, "-") || absl::EndsWith(before, "+"))) {
    negative = absl::EndsWith(before, "-");
    before.remove_suffix(1);
  }
  size_t end = begin;
  while (end < text.size() && IsNumberByte(text[end])) ++end;
  if (absl::StrContains(text.substr(begin, end - begin), "..")) return false;
  absl::string_view number = text.substr(begin, end - begin), behind = text.substr(end);
  // 1.5e+06, and Fortran's 1.5D+06
  const bool fortran = behind.size() > 1 && absl::ascii_tolower(behind[0]) == 'd' &&
                       (behind[1] == '+' || behind[1] == '-') && absl::StrContains(number, '.');
  if (!behind.empty() && (behind[0] == 'e' || behind[0] == 'E' || fortran)) {
    size_t power = 1;
    if (power < behind.size() && (behind[power] == '+' || behind[power] == '-')) ++power;
    size_t last = power;
    while (last < behind.size() && absl::ascii_isdigit(behind[last])) ++last;
    if (last > power) {
      number = text.substr(begin, end - begin + last);
      behind.remove_prefix(last);
    }
  }
  StripNoCents(&number, &behind);
  StripHedgesAfter(&behind);
  // Of bookkeepers: 12.50-.
  if (!has_sign && behind == "-") {
    negative = true;
    behind = "";
  }
  parts->negative = parts->negative != negative;
  parts->before = std::string(absl::StripAsciiWhitespace(before));
  parts->number = std::string(absl::StripAsciiWhitespace(number));
  if (fortran) parts->number = absl::StrReplaceAll(parts->number, {{"D", "e"}, {"d", "e"}});
  parts->behind = std::string(absl::StripAsciiWhitespace(behind));
  const bool has_digits = parts->behind.find_first_of("0123456789") != std::string::npos;
  if (has_digits && !IsOutOf(parts->behind)) return false;
  return parts->before.size() <= kMaxUnit && parts->behind.size() <= kMaxUnit;
}

bool SplitRange(absl::string_view field, std::string* low, std::string* high) {
  if (IsInterval(field)) return SplitInterval(field, low, high);
  const std::string plain = WithPlainSigns(Unquoted(field));
  for (const std::string mark : {" to ", " bis ", " \xc3\xa0 ", " through ", "\xe2\x80\xa6",
                                 "\xe2\x80\x93", "\xe2\x80\x94", "..", "~", "-"}) {
    const size_t place = plain.find(mark);
    if (place == std::string::npos || place == 0) continue;
    *low = std::string(absl::StripAsciiWhitespace(plain.substr(0, place)));
    *high = std::string(absl::StripAsciiWhitespace(plain.substr(place + mark.size())));
    NumberParts ends[2];
    if (!SplitNumber(*low, &ends[0]) || !SplitNumber(*high, &ends[1])) return false;
    return std::all_of(std::begin(ends), std::end(ends), [](const NumberParts& end) {
      const bool zero = end.number.size() > 1 && end.number[0] == '0' &&
                        absl::ascii_isdigit(static_cast<unsigned char>(end.number[1]));
      return !end.negative && !zero;
    });
  }
  return false;
}

}  // namespace cistern::data
