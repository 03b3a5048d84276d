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
#include "worker/data/recipe/compound_amount.h"
#include "worker/data/recipe/number_unit.h"
#include "worker/data/recipe/value_text.h"
#include "worker/data/recipe/written_number.h"

namespace cistern::data {
namespace {

constexpr double kMinNumbers = 0.7;    // of the texts
constexpr size_t kNumbersPerUnit = 2;  // at most
constexpr size_t kMaxUnits = 20;       // kept
constexpr size_t kGroupDigits = 3;

// A number that a program reads back; with a point, because an amount is no code.
std::string AmountText(double x) {
  std::string text = absl::StrFormat("%.15g", x);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
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

// Whether a number's unit is a denominator, as in "3/8", which is below 1.
bool IsProperFraction(const NumberParts& parts, double* value) {
  double numerator = 0, denominator = 0;
  absl::string_view below = parts.behind;
  if (!parts.before.empty() || !absl::ConsumePrefix(&below, "/")) return false;
  if (!absl::SimpleAtod(parts.number, &numerator) || !absl::SimpleAtod(below, &denominator)) {
    return false;
  }
  *value = numerator / denominator;
  return numerator < denominator;
}

// The unit of a number, if it has one and it is one: "" for none.
std::optional<std::string> UnitOf(const NumberParts& parts) {
  if (parts.before.empty()) return parts.behind;
  if (!parts.behind.empty()) return std::nullopt;
  const bool is_name = absl::EndsWith(parts.before, ":") || absl::EndsWith(parts.before, "=");
  if (is_name || MayStandBefore(parts.before)) return parts.before;
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
    NumberParts parts;
    const auto is_mixed = [&](const std::string& text) {
      return SplitNumber(text, &parts) && parts.mixed;
    };
    has_mixed_ = std::any_of(texts.begin(), texts.end(), is_mixed);
    for (const std::string& text : texts) {
      if (!text.empty()) Add(text);
    }
  }

  std::optional<NumberForm> Find() const {
    const double share = static_cast<double>(count_ - others_) / static_cast<double>(count_);
    if (count_ == 0 || numbers_.empty() || share < kMinNumbers) return std::nullopt;
    if (none_.size() > kMaxNoneTexts) return std::nullopt;
    NumberForm form;
    if (!compounds_.empty()) {
      const Scale::Family family = compounds_.front().family;
      const auto fits = [&](const CompoundAmount& one) { return one.family == family; };
      const auto is_certain = [](const CompoundAmount& one) { return one.is_certain; };
      if (!std::all_of(compounds_.begin(), compounds_.end(), fits) ||
          std::none_of(compounds_.begin(), compounds_.end(), is_certain) ||
          compounds_.size() + scaled_[family] < numbers_.size()) {
        return std::nullopt;
      }
      if (family != Scale::kTime || compounds_.size() < numbers_.size()) form.unit = BaseOf(family);
    } else if (!units_.empty() && !FindScale(&form)) {
      const auto is_other = [&](const auto& unit) { return !AreSameUnits(unit, *units_.begin()); };
      if (std::any_of(units_.begin(), units_.end(), is_other)) return std::nullopt;
      form.unit = *units_.begin();
      // Codes have names, too (id: 17), but no fractions.
      const bool is_name = absl::EndsWith(form.unit, ":") || absl::EndsWith(form.unit, "=");
      const auto has_fraction = [](const std::string& number) {
        return number.find_first_of(".,") != std::string::npos;
      };
      if (is_name && std::none_of(numbers_.begin(), numbers_.end(), has_fraction)) {
        return std::nullopt;
      }
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
    if (const std::optional<CompoundAmount> compound = ReadCompoundAmount(text)) {
      compounds_.push_back(*compound);
      return numbers_.push_back(AmountText(compound->amount));
    }
    NumberParts parts;
    const bool split = SplitNumber(text, &parts);
    if (double value = 0; split && has_mixed_ && IsProperFraction(parts, &value)) {
      return numbers_.push_back(AmountText(value));
    }
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
    for (const Scale::Family family : {Scale::kCount, Scale::kBytes, Scale::kTime, Scale::kLength,
                                       Scale::kMass, Scale::kVolume}) {
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
      const std::set<std::string>& units = scales_[family];
      const auto is_other = [&](const auto& one) { return !AreSameUnits(one, *units.begin()); };
      const bool several = std::any_of(units.begin(), units.end(), is_other);
      if (!several || scaled_[family] < numbers_.size()) continue;
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
  static const char* BaseOf(Scale::Family family) {
    const auto base = std::find_if(std::begin(kBaseUnits), std::end(kBaseUnits),
                                   [&](const auto& one) { return one.first == family; });
    return base->second;
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
    if (!compounds_.empty() || !ranges_.empty()) return false;
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
  std::set<std::string> unit_texts_;  // of numbers with a unit; a few of them
  std::vector<CompoundAmount> compounds_;
  bool has_mixed_ = false;                // 10 3/8
  size_t scaled_[Scale::kFamilies] = {};  // by Scale::Family
  std::set<std::string> scales_[Scale::kFamilies];
  std::vector<std::pair<std::string, std::string>> ranges_;
  std::set<std::string> currencies_;  // the units of numbers, without k, M and B
  bool has_scaled_fraction_ = false;
};

}  // namespace

bool PlainNumber(absl::string_view text, const NumberForm& form, std::string* plain) {
  double amount = 0;
  if (const std::optional<CompoundAmount> compound = ReadCompoundAmount(text)) {
    *plain = AmountText(compound->amount);
    return compound->family == Scale::kTime || compound->family == FamilyOf(form.unit);
  }
  NumberParts parts;
  if (!SplitNumber(text, &parts)) return MiddleOfRange(text, form, plain);
  std::optional<std::string> unit = UnitOf(parts);
  const bool is_unit = unit && (unit->empty() || AreSameUnits(*unit, form.unit));
  if (!is_unit && IsProperFraction(parts, &amount)) {
    *plain = AmountText(amount);
    return true;
  }
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
