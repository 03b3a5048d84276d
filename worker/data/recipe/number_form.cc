#include "worker/data/recipe/number_form.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "worker/data/recipe/number_unit.h"
#include "worker/data/recipe/value_text.h"

namespace cistern::data {
namespace {

constexpr double kMinNumbers = 0.7;    // of the texts
constexpr size_t kMaxUnit = 12;        // bytes
constexpr size_t kNumbersPerUnit = 2;  // at most
constexpr size_t kMaxUnits = 20;       // kept
constexpr size_t kGroupDigits = 3;

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
                                         ">=",
                                         "<",
                                         ">",
                                         "\xe2\x89\xa4",
                                         "\xe2\x89\xa5"};
constexpr const char* kHedgesAfter[] = {"or more", "or less", "and over",     "and above",
                                        "approx.", "approx",  "(est.)",       "est.",
                                        "+",       "*",       "\xe2\x80\xa0", "\xe2\x80\xa1"};

// A number that a program reads back; with a point, because an amount is no code.
std::string AmountText(double x) {
  std::string text = absl::StrFormat("%.15g", x);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// A text in parts: "-$1,234.5 per day" is negative, "$", "1,234.5", "per day".
struct NumberParts {
  bool negative = false;
  std::string before, number, behind;
};

bool IsNumberByte(char c) {
  return absl::ascii_isdigit(c) || c == '.' || c == ',' || c == '\'' || c == '_' || c == ' ';
}

// Removes digits, and a fraction, from the front of a text.
bool ConsumeAmount(absl::string_view* text, double* amount) {
  const size_t end = std::min(text->find_first_not_of("0123456789."), text->size());
  if (end == 0 || !absl::SimpleAtod(text->substr(0, end), amount)) return false;
  text->remove_prefix(end);
  return true;
}

// "1h 23m", "2 days, 3 hours", "2h30" and ISO's "P1DT2H" in seconds: several amounts of units, each
// smaller than the one before it, or one behind a P.
bool DurationSeconds(absl::string_view text, double* seconds) {
  const bool iso = absl::ConsumePrefix(&text, "P");
  const absl::string_view date = text.substr(0, text.find('T'));
  // Months have no length.
  if (iso && absl::StrContains(date, 'M')) return false;
  double last = 1e9;
  size_t parts = 0;
  *seconds = 0;
  while (!text.empty()) {
    if (iso) absl::ConsumePrefix(&text, "T");
    double amount = 0;
    if (!ConsumeAmount(&text, &amount)) return false;
    text = absl::StripLeadingAsciiWhitespace(text);
    size_t end = 0;
    while (end < text.size() && absl::ascii_isalpha(static_cast<unsigned char>(text[end]))) {
      // The T of "P1DT2H" belongs to no unit.
      if (iso && end > 0) break;
      ++end;
    }
    std::string unit(text.substr(0, end));
    if (iso) absl::AsciiStrToLower(&unit);
    if (unit.empty() && last == 3600) unit = "min";
    const Scale* const scale = ScaleOf(unit, Scale::kTime);
    if (scale == nullptr || scale->factor >= last) return false;
    *seconds += amount * scale->factor;
    last = scale->factor;
    ++parts;
    text.remove_prefix(end);
    text = absl::StripLeadingAsciiWhitespace(text);
    if (absl::ConsumePrefix(&text, ",") || absl::ConsumePrefix(&text, "and ")) {
      text = absl::StripLeadingAsciiWhitespace(text);
    }
  }
  return parts > 1 || (iso && parts == 1);
}

// "0:12:31.5", "12:31" (minutes and seconds) and "-1 days +02:00:00" of pandas in seconds. parts:
// of the clock, between colons.
bool ClockSeconds(absl::string_view text, double* seconds, size_t* parts) {
  text = absl::StripAsciiWhitespace(text);
  *parts = 3;
  if (DurationSeconds(text, seconds)) return true;
  double days = 0;
  const size_t word = text.find(" day");
  if (word != absl::string_view::npos) {
    if (!IsInteger(text.substr(0, word)) || !absl::SimpleAtod(text.substr(0, word), &days)) {
      return false;
    }
    text.remove_prefix(word + 4);
    absl::ConsumePrefix(&text, "s");
    absl::ConsumePrefix(&text, ",");
    text = absl::StripLeadingAsciiWhitespace(text);
    absl::ConsumePrefix(&text, "+");
  }
  const std::vector<absl::string_view> fields = absl::StrSplit(text, ':');
  *parts = fields.size();
  if (*parts < 2 || *parts > 3) return false;
  double clock = 0;
  for (size_t i = 0; i < *parts; ++i) {
    const absl::string_view whole = fields[i].substr(0, fields[i].find('.'));
    const bool last = i + 1 == *parts;
    const size_t digits_most = i == 0 ? 4 : 2, digits_least = i == 0 ? 1 : 2;
    double x = 0;
    if (whole.size() < digits_least || whole.size() > digits_most) return false;
    if (fields[i].find_first_not_of("0123456789.") != absl::string_view::npos) return false;
    if (!last && whole.size() != fields[i].size()) return false;
    if (!absl::SimpleAtod(fields[i], &x) || (i > 0 && x >= 60)) return false;
    clock = clock * 60 + x;
  }
  *seconds = days * 86400 + clock;
  return true;
}

// The text without the quotes of a program that wrote it twice: "12", ="12". '12 is a text to a
// spreadsheet.
absl::string_view Unquoted(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (absl::StartsWith(text, "=\"")) text.remove_prefix(1);
  const bool quoted = text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
                      text.back() == text.front();
  if (!quoted && text.size() > 1 && text.front() == '\'') return text.substr(1);
  return quoted ? text.substr(1, text.size() - 2) : text;
}

// Digits of other scripts become those of ASCII: full-width ones, Arabic and Persian ones.
std::string WithPlainDigits(absl::string_view text) {
  constexpr std::pair<const char*, char> kZeros[] = {
      {"\xef\xbc", '\x90'}, {"\xd9", '\xa0'}, {"\xdb", '\xb0'}};
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
  constexpr size_t kMaxDigits = 6;
  bool found = false;
  for (const absl::string_view word : {"/", "out of ", "of "}) {
    found = found || absl::ConsumePrefix(&behind, word);
  }
  behind = absl::StripAsciiWhitespace(behind);
  return found && !behind.empty() && behind.size() <= kMaxDigits &&
         behind.find_first_not_of("0123456789") == absl::string_view::npos;
}

bool TakeSign(absl::string_view* text, bool* negative) {
  *text = absl::StripAsciiWhitespace(*text);
  if (absl::ConsumePrefix(text, "-")) return *negative = true;
  return absl::ConsumePrefix(text, "+");
}

// False for a text without one number in it.
bool Split(absl::string_view field, NumberParts* parts) {
  const std::string plain = WithPlainSigns(Unquoted(field));
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

// The two ends of a range: "10-20", "$18 to $24". Neither is negative, or begins with 0 as the
// month in 05-17 does.
bool SplitRange(absl::string_view field, std::string* low, std::string* high) {
  const std::string plain = WithPlainSigns(Unquoted(field));
  for (const std::string mark : {" to ", "\xe2\x80\x93", "\xe2\x80\x94", "..", "~", "-"}) {
    const size_t place = plain.find(mark);
    if (place == std::string::npos || place == 0) continue;
    *low = std::string(absl::StripAsciiWhitespace(plain.substr(0, place)));
    *high = std::string(absl::StripAsciiWhitespace(plain.substr(place + mark.size())));
    NumberParts ends[2];
    if (!Split(*low, &ends[0]) || !Split(*high, &ends[1])) return false;
    return std::all_of(std::begin(ends), std::end(ends), [](const NumberParts& end) {
      const bool zero = end.number.size() > 1 && end.number[0] == '0' &&
                        absl::ascii_isdigit(static_cast<unsigned char>(end.number[1]));
      return !end.negative && !zero;
    });
  }
  return false;
}

// Whether the ends of ranges rise together, as those of codes (12-905) do not: Spearman's
// correlation of their ranks.
bool RiseTogether(const std::vector<std::pair<double, double>>& ranges) {
  constexpr size_t kMinRanges = 5;
  constexpr double kMinCorrelation = 0.9;
  const size_t n = ranges.size();
  if (n < kMinRanges) return true;
  std::vector<double> ranks[2] = {std::vector<double>(n), std::vector<double>(n)};
  for (const int end : {0, 1}) {
    const auto value = [&](size_t i) { return end == 0 ? ranges[i].first : ranges[i].second; };
    std::vector<size_t> order(n);
    for (size_t i = 0; i < n; ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return value(a) < value(b); });
    for (size_t begin = 0, next = 0; begin < n; begin = next) {
      while (next < n && value(order[next]) == value(order[begin])) ++next;
      for (size_t i = begin; i < next; ++i) {
        ranks[end][order[i]] = static_cast<double>(begin + next) - static_cast<double>(n);
      }
    }
  }
  double products = 0, squares[2] = {};
  for (size_t i = 0; i < n; ++i) {
    products += ranks[0][i] * ranks[1][i];
    for (const int end : {0, 1}) squares[end] += ranks[end][i] * ranks[end][i];
  }
  return products >= kMinCorrelation * std::sqrt(squares[0] * squares[1]);
}

// Removes the separators of thousands; false if they are not where they belong. India's are those
// of a thousand and of each hundred of them: 12,34,567.
bool Ungroup(char group, std::string* whole) {
  if (group == 0 || whole->find(group) == std::string::npos) return true;
  const size_t first = whole->find(group);
  if (first == 0 || first > kGroupDigits || (*whole)[0] == '0') return false;
  const size_t groups = static_cast<size_t>(std::count(whole->begin(), whole->end(), group));
  const size_t digits = whole->size() - first - groups;
  const bool indian = group == ',' && first < kGroupDigits && groups > 1 &&
                      digits == kGroupDigits + (groups - 1) * (kGroupDigits - 1);
  const size_t step = indian ? kGroupDigits : kGroupDigits + 1;
  if (!indian && digits != kGroupDigits * groups) return false;
  for (size_t i = first, found = 0; found < groups; i += step, ++found) {
    if ((*whole)[i] != group) return false;
  }
  whole->erase(std::remove(whole->begin(), whole->end(), group), whole->end());
  return true;
}

// The plain text of "1.234,50", whose exponent may follow: of 1,234e+01 no program separates the
// thousands.
bool Unwrite(absl::string_view number, char decimal, char group, std::string* plain) {
  const size_t exponent = std::min(number.find_first_of("eE"), number.size());
  const absl::string_view mantissa = number.substr(0, exponent);
  const size_t point = std::min(mantissa.find(decimal), mantissa.size());
  std::string whole(mantissa.substr(0, point));
  if (!Ungroup(exponent < number.size() ? '\0' : group, &whole)) return false;
  if (whole.empty()) whole = "0";
  *plain = whole;
  if (point < mantissa.size()) absl::StrAppend(plain, ".", mantissa.substr(point + 1));
  absl::StrAppend(plain, number.substr(exponent));
  return plain->find_first_not_of("0123456789.eE+-") == std::string::npos && IsFiniteNumber(*plain);
}

// The unit of a number, if it has one and it is one: "" for none.
std::optional<std::string> UnitOf(const NumberParts& parts) {
  if (parts.before.empty()) return parts.behind;
  if (!parts.behind.empty()) return std::nullopt;
  if (MayStandBefore(parts.before)) return parts.before;
  return std::nullopt;
}

// Whether a group of three digits begins with 0: "12,034".
bool HasZeroGroup(const std::string& number, char group) {
  return absl::StrContains(number, std::string(1, group) + "0");
}

// Whether all behind the decimal comma could be a group of three digits, as in 101,205, or nothing
// is behind it.
bool IsGroup(const std::string& number, char decimal) {
  const size_t point = number.find(decimal);
  if (point == std::string::npos) return true;
  return number.size() == point + 1 + kGroupDigits && number[point + 1] != '0';
}

// "10-20" is 15.
bool MiddleOfRange(absl::string_view text, const NumberForm& form, std::string* plain) {
  std::string low, high;
  double a = 0, b = 0;
  const bool found = SplitRange(text, &low, &high) && PlainNumber(low, form, &low) &&
                     PlainNumber(high, form, &high) && absl::SimpleAtod(low, &a) &&
                     absl::SimpleAtod(high, &b) && a <= b;
  if (found) *plain = AmountText(a + (b - a) / 2);
  return found;
}

class FormFinder {
 public:
  explicit FormFinder(absl::Span<const std::string> texts) {
    for (const std::string& text : texts) {
      if (!text.empty()) Add(text);
    }
  }

  std::optional<NumberForm> Find() const {
    const double share = static_cast<double>(count_ - others_) / static_cast<double>(count_);
    if (count_ == 0 || numbers_.empty() || share < kMinNumbers) return std::nullopt;
    if (none_.size() > kMaxNoneTexts) return std::nullopt;
    NumberForm form;
    if (clocks_ > 0) {
      if (!has_hours_ || clocks_ + scaled_[Scale::kTime] < numbers_.size()) return std::nullopt;
      if (clocks_ < numbers_.size()) form.unit = "s";
    } else if (!units_.empty() && !FindScale(&form)) {
      const auto is_other = [&](const auto& unit) { return !AreSameUnits(unit, *units_.begin()); };
      if (std::any_of(units_.begin(), units_.end(), is_other)) return std::nullopt;
      form.unit = *units_.begin();
    }
    // A unit that few have is that of none: 0x among plain numbers.
    if (form.unit == OnlyUnit() && kNumbersPerUnit * with_unit_ < numbers_.size()) {
      form.unit.clear();
      if (none_.size() + unit_texts_.size() > kMaxNoneTexts) return std::nullopt;
      form.none.assign(unit_texts_.begin(), unit_texts_.end());
    }
    form.none.insert(form.none.end(), none_.begin(), none_.end());
    std::sort(form.none.begin(), form.none.end());
    if (ArePointsThousands()) {
      form.decimal = ',';
      form.group = '.';
      return form;
    }
    for (const auto& [decimal, group] :
         {std::pair{'.', '\0'}, std::pair{'.', ','}, std::pair{',', '\0'}, std::pair{',', '.'},
          std::pair{'.', ' '}, std::pair{',', ' '}, std::pair{'.', '\''}, std::pair{',', '\''},
          std::pair{'.', '_'}}) {
      if (!Fits(decimal, group)) continue;
      form.decimal = decimal;
      form.group = group;
      if (!AreRanges(form)) return std::nullopt;
      return form;
    }
    return std::nullopt;
  }

 private:
  void Add(const std::string& text) {
    ++count_;
    double seconds = 0;
    size_t fields = 0;
    if (ClockSeconds(text, &seconds, &fields)) {
      ++clocks_;
      has_hours_ = has_hours_ || fields == 3;
      return numbers_.push_back(AmountText(seconds));
    }
    NumberParts parts;
    const bool split = Split(text, &parts);
    std::pair<std::string, std::string> range;
    if (!split && SplitRange(text, &range.first, &range.second)) {
      --count_;  // once for both ends
      Add(range.first);
      --count_;
      Add(range.second);
      ++count_;
      return ranges_.push_back(std::move(range));
    }
    std::optional<std::string> unit = split ? UnitOf(parts) : std::nullopt;
    const bool scaled = split && AddScale(parts);
    if (scaled && !unit) unit = parts.before + parts.behind;  // $1.5M
    if (!scaled && unit) currencies_.insert(*unit);
    if (!unit) {
      ++others_;
      if (none_.size() <= kMaxNoneTexts) none_.insert(text);
      return;
    }
    if (!unit->empty()) {
      ++with_unit_;
      if (units_.size() < kMaxUnits) units_.insert(*unit);
      if (unit_texts_.size() <= kMaxNoneTexts) unit_texts_.insert(text);
    }
    numbers_.push_back(parts.number);
  }
  // Notes what a number is multiplied by; false if its unit says nothing of the kind.
  bool AddScale(const NumberParts& parts) {
    NumberParts bare = parts;
    bare.behind.clear();
    const std::optional<std::string> currency = UnitOf(bare);
    if (!currency) return false;
    const bool counts = ScaleOf(parts.behind, Scale::kCount) != nullptr;
    bool any = false;
    for (const Scale::Family family :
         {Scale::kCount, Scale::kBytes, Scale::kTime, Scale::kLength, Scale::kMass}) {
      if (ScaleOf(parts.behind, family) == nullptr) continue;
      any = true;
      ++scaled_[family];
      scales_[family].insert(parts.behind);
    }
    if (any) currencies_.insert(counts ? *currency : *currency + parts.behind);
    if (any) has_scaled_fraction_ |= absl::StrContains(parts.number, '.');
    return any;
  }
  // The form of numbers with several such units. Counts may lack one: 880 and 2.2k.
  bool FindScale(NumberForm* form) const {
    for (const auto& [family, unit] : kBaseUnits) {
      if (scales_[family].size() < 2 || scaled_[family] < numbers_.size()) continue;
      form->unit = unit;
      return true;
    }
    const bool several =
        scales_[Scale::kCount].size() > 1 || scaled_[Scale::kCount] < numbers_.size();
    // House numbers (12B) have no fraction.
    if (!several || scaled_[Scale::kCount] == 0 || !has_scaled_fraction_) return false;
    if (currencies_.size() > 1) return false;
    form->unit = *currencies_.begin();
    return true;
  }
  // The one unit that numbers have; "" without one, or if units are multiples of each other.
  std::string OnlyUnit() const {
    NumberForm form;
    return units_.size() == 1 && !FindScale(&form) ? *units_.begin() : "";
  }
  // Whether the ranges are some: their ends are in order, and rise together.
  bool AreRanges(const NumberForm& form) const {
    std::vector<std::pair<double, double>> ranges;
    std::string low, high;
    for (const auto& [first, last] : ranges_) {
      double a = 0, b = 0;
      if (!PlainNumber(first, form, &low) || !PlainNumber(last, form, &high)) return false;
      if (!absl::SimpleAtod(low, &a) || !absl::SimpleAtod(high, &b) || a > b) return false;
      ranges.emplace_back(a, b);
    }
    return RiseTogether(ranges);
  }
  // Whether 1.047 is a thousand: no number has other than three digits behind its point, though
  // some end with 0, which programs that shorten fractions leave out, and several are whole numbers
  // below a thousand, which those that write three digits of each do not write.
  bool ArePointsThousands() const {
    constexpr size_t kMinWhole = 5;  // distinct; a few are codes, such as 0 for none
    if (clocks_ > 0 || !ranges_.empty()) return false;
    if (std::any_of(std::begin(scaled_), std::end(scaled_), [](size_t n) { return n > 0; })) {
      return false;
    }
    std::set<std::string> whole_numbers;
    bool ends_with_0 = false;
    for (const std::string& number : numbers_) {
      std::string whole = number;
      if (!Ungroup('.', &whole)) return false;
      if (whole.find_first_not_of("0123456789") != std::string::npos) return false;
      const bool has_point = whole.size() < number.size();
      if (!has_point && whole.size() > kGroupDigits) return false;
      ends_with_0 = ends_with_0 || (has_point && whole.back() == '0');
      if (!has_point && whole_numbers.size() < kMinWhole) whole_numbers.insert(whole);
    }
    return ends_with_0 && whole_numbers.size() == kMinWhole;
  }
  bool Fits(char decimal, char group) const {
    bool proof = decimal == '.' && group == 0;
    std::string plain;
    for (const std::string& number : numbers_) {
      if (!Unwrite(number, decimal, group, &plain)) return false;
      proof = proof || (group != 0 ? HasZeroGroup(number, group) : !IsGroup(number, decimal));
    }
    return proof;
  }

  size_t count_ = 0, others_ = 0, with_unit_ = 0;
  std::vector<std::string> numbers_;
  std::set<std::string> units_, none_;
  std::set<std::string> unit_texts_;      // of numbers with a unit; a few of them
  size_t clocks_ = 0;                     // 0:12:31
  bool has_hours_ = false;                // of these
  size_t scaled_[Scale::kFamilies] = {};  // by Scale::Family
  std::set<std::string> scales_[Scale::kFamilies];
  std::vector<std::pair<std::string, std::string>> ranges_;
  std::set<std::string> currencies_;  // the units of numbers, without k, M and B
  bool has_scaled_fraction_ = false;
};

}  // namespace

bool PlainNumber(absl::string_view text, const NumberForm& form, std::string* plain) {
  double amount = 0;
  size_t fields = 0;
  if (ClockSeconds(text, &amount, &fields)) {
    *plain = AmountText(amount);
    return true;
  }
  NumberParts parts;
  if (!Split(text, &parts)) return MiddleOfRange(text, form, plain);
  std::optional<std::string> unit = UnitOf(parts);
  const bool is_unit = unit && (unit->empty() || AreSameUnits(*unit, form.unit));
  const Scale* const scale = is_unit ? nullptr : ScaleOf(parts.behind, FamilyOf(form.unit));
  if (scale != nullptr) {
    parts.behind.clear();
    unit = UnitOf(parts);
  }
  if (!unit || (!unit->empty() && !AreSameUnits(*unit, form.unit))) return false;
  if (!Unwrite(parts.number, form.decimal, form.group, plain)) return false;
  if (scale != nullptr && absl::SimpleAtod(*plain, &amount)) {
    *plain = AmountText(amount * scale->factor);
  }
  if (parts.negative) plain->insert(0, "-");
  return true;
}

absl::string_view PlainField(absl::string_view field, const NumberForm& form, std::string* buffer) {
  const auto is_none = [&](absl::string_view text) {
    return std::binary_search(form.none.begin(), form.none.end(), text);
  };
  if (is_none(field)) return "";
  if (!PlainNumber(field, form, buffer)) return field;
  return is_none(*buffer) ? "" : absl::string_view(*buffer);
}

std::optional<NumberForm> FindNumberForm(absl::Span<const std::string> texts) {
  return FormFinder(texts).Find();
}

}  // namespace cistern::data
