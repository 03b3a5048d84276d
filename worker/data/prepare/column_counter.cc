#include "worker/data/prepare/column_counter.h"

#include <cmath>

#include "common/base/hash.h"
#include "worker/data/recipe/value_text.h"

namespace cistern::data {

void ColumnCounter::Add(absl::string_view text) {
  double x = 0;
  const NumberKind kind = number_ ? ReadNumber(text, &x) : NumberKind::kNone;
  if (kind == NumberKind::kNan) return AddMissing();
  if (kind == NumberKind::kInfinite && AddInfinite(text)) return;
  number_ = number_ && kind == NumberKind::kFinite;
  distinct_.Add(HashBytes(text.data(), text.size()));
  if (number_) {
    AddInteger(text);
  } else {
    integer_ = false;
  }
  times_.Add(text);
  if (number_) AddNumber(x);
  if (!many_) CountValue(text, 1);
  ++count_;
}

bool ColumnCounter::AddInfinite(absl::string_view text) {
  constexpr size_t kMaxForms = 16;
  for (auto& [form, count] : infinite_) {
    if (form == text) return ++count > 0;
  }
  if (infinite_.size() == kMaxForms) return false;
  infinite_.emplace_back(std::string(text), 1);
  return true;
}

void ColumnCounter::AddInteger(absl::string_view text) {
  integer_ = integer_ && IsInteger(text);
  float_text_ = float_text_ || text.find_first_of(".eE") != absl::string_view::npos;
  if (text.find_first_of("eE") == absl::string_view::npos) return;
  exponent_ = true;
  size_t digits = 0;
  if (!IsExponentCode(text, &digits)) return;
  ++codes_;
  long_codes_ += digits > 1;
}

void ColumnCounter::TakeInfinite() {
  for (const auto& [text, count] : infinite_) {
    distinct_.Add(HashBytes(text.data(), text.size()));
    if (!many_) CountValue(text, count);
    count_ += count;
  }
  infinite_.clear();
}

// Moments in one pass (Pebay 2008).
void ColumnCounter::AddNumber(double x) {
  const std::optional<unsigned> unit = EpochUnit(x);
  epochs_ = epochs_ && unit;
  if (unit) epoch_units_ |= 1u << *unit;
  const double n = static_cast<double>(count_ + 1), delta = x - mean_, step = delta / n;
  const double term = delta * step * (n - 1);
  cubes_ += term * step * (n - 2) - 3 * step * squares_;
  squares_ += term;
  mean_ += step;
  min_ = count_ == 0 ? x : std::min(min_, x);
  max_ = count_ == 0 ? x : std::max(max_, x);
}

void ColumnCounter::CountValue(absl::string_view text, uint64_t more) {
  for (auto& [value, count] : values_) {
    if (value != text) continue;
    count += more;
    return;
  }
  many_ = values_.size() == ColumnProfile::kFewValues;
  if (many_) {
    values_.clear();
  } else {
    values_.emplace_back(std::string(text), more);
  }
}

ColumnProfile ColumnCounter::Profile(const std::string& name) {
  if (long_codes_ > 0 || (codes_ > 0 && codes_ == count_)) number_ = integer_ = false;
  if (!number_ || count_ == 0) TakeInfinite();
  ColumnProfile profile;
  profile.name = name;
  profile.type = count_ == 0    ? ColumnType::kEmpty
                 : integer_     ? ColumnType::kInteger
                 : number_      ? ColumnType::kNumber
                 : times_.any() ? ColumnType::kTime
                                : ColumnType::kText;
  if (profile.type == ColumnType::kTime) profile.time_form = times_.form();
  if (profile.type == ColumnType::kText && times_.odd() > 0) {
    profile.odd_times = times_.odd();
    profile.odd_time = times_.first_odd();
  }
  for (const auto& [text, count] : infinite_) profile.infinite += count;
  profile.missing = missing_ + profile.infinite;
  profile.float_text = float_text_;
  profile.distinct = distinct_.Distinct();
  profile.distinct_exact = distinct_.exact();
  profile.values = values_;
  if (count_ == 0 || !number_) return profile;
  const double n = static_cast<double>(count_);
  const bool one_unit = (epoch_units_ & (epoch_units_ - 1)) == 0;
  if (epochs_ && !one_unit) profile.time_form.number = TimeForm::kEpochs;
  profile.min = min_;
  profile.max = max_;
  profile.mean = mean_;
  profile.deviation = std::sqrt(squares_ / n);
  // Measures such as 6.02e23 are integers only as they are written.
  constexpr double kMeasuresFrom = 1e15;
  if (integer_ && exponent_ && max_ > kMeasuresFrom && 2 * profile.distinct > count_) {
    profile.type = ColumnType::kNumber;
  }
  if (squares_ > 0) profile.skewness = std::sqrt(n) * cubes_ / std::pow(squares_, 1.5);
  return profile;
}

}  // namespace cistern::data
