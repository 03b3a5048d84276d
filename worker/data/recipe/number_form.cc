#include "worker/data/recipe/number_form.h"

#include <algorithm>
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
#include "worker/data/recipe/value_text.h"

namespace cistern {
namespace {

constexpr double kNumbersLeast = 0.7;  // of the texts
constexpr size_t kUnitMost = 12;       // bytes
constexpr size_t kNumbersPerUnit = 2;  // at most
constexpr size_t kUnitsMost = 20;      // kept
constexpr size_t kGroupDigits = 3;

// Signs of currencies and the like, which may stand before a number.
constexpr const char* kUnitsBefore[] = {"$",
                                        "\xe2\x82\xac",
                                        "\xc2\xa3",
                                        "\xc2\xa5",
                                        "\xef\xbf\xa5",
                                        "\xe2\x82\xb9",
                                        "\xe2\x82\xbd",
                                        "US$",
                                        "R$",
                                        "A$",
                                        "C$",
                                        "HK$",
                                        "NT$",
                                        "\xe2\x82\xa9",
                                        "Rs.",
                                        "Rs",
                                        "kr",
                                        "z\xc5\x82",
                                        "CHF",
                                        "USD",
                                        "EUR",
                                        "GBP",
                                        "JPY",
                                        "CNY",
                                        "RMB",
                                        "INR",
                                        "BRL",
                                        "RUB",
                                        "~",
                                        "<",
                                        ">",
                                        "#"};

// What a number is multiplied by: 1.5M is 1500000, 3 KB are 3000, 2 min are 120.
struct Scale {
  enum Family { kCount, kBytes, kTime } family;
  const char* unit;
  double factor;
};
constexpr Scale kScales[] = {
    {Scale::kCount, "k", 1e3},       {Scale::kCount, "K", 1e3},    {Scale::kCount, "M", 1e6},
    {Scale::kCount, "Mio", 1e6},     {Scale::kCount, "B", 1e9},    {Scale::kCount, "bn", 1e9},
    {Scale::kBytes, "B", 1},         {Scale::kBytes, "bytes", 1},  {Scale::kBytes, "kB", 1e3},
    {Scale::kBytes, "KB", 1e3},      {Scale::kBytes, "MB", 1e6},   {Scale::kBytes, "GB", 1e9},
    {Scale::kBytes, "TB", 1e12},     {Scale::kBytes, "KiB", 1024}, {Scale::kBytes, "MiB", 1048576},
    {Scale::kBytes, "GiB", 1 << 30}, {Scale::kTime, "us", 1e-6},   {Scale::kTime, "ms", 1e-3},
    {Scale::kTime, "s", 1},          {Scale::kTime, "sec", 1},     {Scale::kTime, "min", 60},
    {Scale::kTime, "mins", 60},      {Scale::kTime, "h", 3600},    {Scale::kTime, "hr", 3600},
    {Scale::kTime, "hrs", 3600},     {Scale::kTime, "hours", 3600}};

const Scale* ScaleOf(absl::string_view unit, Scale::Family family) {
  for (const Scale& scale : kScales) {
    if (scale.family == family && scale.unit == unit) return &scale;
  }
  return nullptr;
}

// The family of a form: bytes and seconds are named as its unit, and B alone is a billion.
Scale::Family FamilyOf(const NumberForm& form) {
  return form.unit == "B" ? Scale::kBytes : form.unit == "s" ? Scale::kTime : Scale::kCount;
}

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

// "0:12:31.5", "12:31" (minutes and seconds) and "-1 days +02:00:00" of pandas in seconds. parts:
// of the clock, between colons.
bool ClockSeconds(absl::string_view text, double* seconds, size_t* parts) {
  text = absl::StripAsciiWhitespace(text);
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

// The text without the quotes of a program that wrote it twice: "12", ="12".
absl::string_view Unquoted(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (absl::StartsWith(text, "=\"")) text.remove_prefix(1);
  const bool quoted = text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
                      text.back() == text.front();
  return quoted ? text.substr(1, text.size() - 2) : text;
}

// Spaces of typography become plain ones, and its minus a hyphen.
std::string WithPlainSigns(absl::string_view text) {
  return absl::StrReplaceAll(absl::StripAsciiWhitespace(text), {{"\xc2\xa0", " "},
                                                                {"\xe2\x80\xaf", " "},
                                                                {"\xe2\x80\x89", " "},
                                                                {"\xe2\x80\x99", "'"},
                                                                {"\xe2\x88\x92", "-"}});
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
  parts->negative = parts->negative != negative;
  parts->before = std::string(absl::StripAsciiWhitespace(before));
  parts->number = std::string(absl::StripAsciiWhitespace(number));
  if (fortran) parts->number = absl::StrReplaceAll(parts->number, {{"D", "e"}, {"d", "e"}});
  parts->behind = std::string(absl::StripAsciiWhitespace(behind));
  if (parts->behind.find_first_of("0123456789") != std::string::npos) return false;
  return parts->before.size() <= kUnitMost && parts->behind.size() <= kUnitMost;
}

// Removes the separators of thousands; false if they are not where they belong.
bool Ungroup(char group, std::string* whole) {
  if (group == 0 || whole->find(group) == std::string::npos) return true;
  const size_t first = whole->find(group);
  if (first == 0 || first > kGroupDigits || (*whole)[0] == '0') return false;
  for (size_t i = first; i < whole->size(); i += kGroupDigits + 1) {
    if ((*whole)[i] != group || i + kGroupDigits >= whole->size()) return false;
  }
  whole->erase(std::remove(whole->begin(), whole->end(), group), whole->end());
  return true;
}

// The plain text of "1.234,50", whose exponent may follow.
bool Unwrite(absl::string_view number, char decimal, char group, std::string* plain) {
  const size_t exponent = std::min(number.find_first_of("eE"), number.size());
  const absl::string_view mantissa = number.substr(0, exponent);
  const size_t point = std::min(mantissa.find(decimal), mantissa.size());
  std::string whole(mantissa.substr(0, point));
  if (!Ungroup(group, &whole)) return false;
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
  for (const char* const unit : kUnitsBefore) {
    if (absl::EqualsIgnoreCase(parts.before, unit)) return parts.before;
  }
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

class FormFinder {
 public:
  explicit FormFinder(absl::Span<const std::string> texts) {
    for (const std::string& text : texts) {
      if (!text.empty()) Add(text);
    }
  }

  std::optional<NumberForm> Find() const {
    const double share = static_cast<double>(count_ - others_) / static_cast<double>(count_);
    if (count_ == 0 || numbers_.empty() || share < kNumbersLeast) return std::nullopt;
    if (none_.size() > kNoneTextsMost) return std::nullopt;
    NumberForm form;
    if (clocks_ > 0) {
      if (!has_hours_ || clocks_ < numbers_.size()) return std::nullopt;
    } else if (!units_.empty() && !FindScale(&form)) {
      if (units_.size() > 1) return std::nullopt;
      form.unit = *units_.begin();
    }
    // A unit that few have is that of none: 0x among plain numbers.
    if (form.unit == OnlyUnit() && kNumbersPerUnit * with_unit_ < numbers_.size()) {
      form.unit.clear();
      if (none_.size() + unit_texts_.size() > kNoneTextsMost) return std::nullopt;
      form.none.assign(unit_texts_.begin(), unit_texts_.end());
    }
    form.none.insert(form.none.end(), none_.begin(), none_.end());
    std::sort(form.none.begin(), form.none.end());
    for (const auto& [decimal, group] :
         {std::pair{'.', '\0'}, std::pair{'.', ','}, std::pair{',', '\0'}, std::pair{',', '.'},
          std::pair{'.', ' '}, std::pair{',', ' '}, std::pair{'.', '\''}, std::pair{',', '\''},
          std::pair{'.', '_'}}) {
      if (!Fits(decimal, group)) continue;
      form.decimal = decimal;
      form.group = group;
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
    std::optional<std::string> unit = split ? UnitOf(parts) : std::nullopt;
    const bool scaled = split && AddScale(parts);
    if (scaled && !unit) unit = parts.before + parts.behind;  // $1.5M
    if (!scaled && unit) currencies_.insert(*unit);
    if (!unit) {
      ++others_;
      if (none_.size() <= kNoneTextsMost) none_.insert(text);
      return;
    }
    if (!unit->empty()) {
      ++with_unit_;
      if (units_.size() < kUnitsMost) units_.insert(*unit);
      if (unit_texts_.size() <= kNoneTextsMost) unit_texts_.insert(text);
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
    for (const Scale::Family family : {Scale::kCount, Scale::kBytes, Scale::kTime}) {
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
    for (const Scale::Family family : {Scale::kBytes, Scale::kTime}) {
      if (scales_[family].size() < 2 || scaled_[family] < numbers_.size()) continue;
      form->unit = family == Scale::kBytes ? "B" : "s";
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
  std::set<std::string> unit_texts_;  // of numbers with a unit; a few of them
  size_t clocks_ = 0;                 // 0:12:31
  bool has_hours_ = false;            // of these
  size_t scaled_[3] = {};             // by Scale::Family
  std::set<std::string> scales_[3];
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
  if (!Split(text, &parts)) return false;
  std::optional<std::string> unit = UnitOf(parts);
  const bool is_unit = unit && (unit->empty() || *unit == form.unit);
  const Scale* const scale = is_unit ? nullptr : ScaleOf(parts.behind, FamilyOf(form));
  if (scale != nullptr) {
    parts.behind.clear();
    unit = UnitOf(parts);
  }
  if (!unit || (!unit->empty() && *unit != form.unit)) return false;
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

}  // namespace cistern
