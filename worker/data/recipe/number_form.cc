#include "worker/data/recipe/number_form.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "worker/data/recipe/value_text.h"

namespace cistern {
namespace {

constexpr double kNumbersLeast = 0.7;  // of the texts
constexpr size_t kUnitMost = 12;       // bytes
constexpr size_t kNumbersPerUnit = 2;  // at most
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

// A text in parts: "-$1,234.5 per day" is negative, "$", "1,234.5", "per day".
struct NumberParts {
  bool negative = false;
  std::string before, number, behind;
};

bool IsNumberByte(char c) {
  return absl::ascii_isdigit(c) || c == '.' || c == ',' || c == '\'' || c == '_' || c == ' ';
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
  const std::string plain = WithPlainSigns(field);
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
  // 1.5e+06
  if (!behind.empty() && (behind[0] == 'e' || behind[0] == 'E')) {
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
    if (none_.size() > kNoneTextsMost || units_.size() > 1) return std::nullopt;
    NumberForm form;
    if (!units_.empty()) form.unit = *units_.begin();
    // A unit that few have is that of none: 0x among plain numbers.
    if (!form.unit.empty() && kNumbersPerUnit * with_unit_ < numbers_.size()) {
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
    NumberParts parts;
    const bool split = Split(text, &parts);
    const std::optional<std::string> unit = split ? UnitOf(parts) : std::nullopt;
    if (!unit) {
      ++others_;
      if (none_.size() <= kNoneTextsMost) none_.insert(text);
      return;
    }
    if (!unit->empty()) {
      ++with_unit_;
      if (units_.size() < 2) units_.insert(*unit);
      if (unit_texts_.size() <= kNoneTextsMost) unit_texts_.insert(text);
    }
    numbers_.push_back(parts.number);
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
};

}  // namespace

bool PlainNumber(absl::string_view text, const NumberForm& form, std::string* plain) {
  NumberParts parts;
  if (!Split(text, &parts)) return false;
  const std::optional<std::string> unit = UnitOf(parts);
  if (!unit || (!unit->empty() && *unit != form.unit)) return false;
  if (!Unwrite(parts.number, form.decimal, form.group, plain)) return false;
  if (parts.negative) plain->insert(0, "-");
  return true;
}

absl::string_view PlainField(absl::string_view field, const NumberForm& form, std::string* buffer) {
  if (std::binary_search(form.none.begin(), form.none.end(), field)) return "";
  return PlainNumber(field, form, buffer) ? absl::string_view(*buffer) : field;
}

std::optional<NumberForm> FindNumberForm(absl::Span<const std::string> texts) {
  return FormFinder(texts).Find();
}

}  // namespace cistern
