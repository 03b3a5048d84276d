#include "common/value/ctr_lifecycle.h"

#include <algorithm>
#include <cmath>

namespace cistern {
namespace {

constexpr uint32_t kMaxDay = 1 << 24;

double LoadShow(const float* value) {
  return LoadDouble(value + ValueLayout::kShow);
}
double LoadClick(const float* value) {
  return LoadDouble(value + ValueLayout::kClick);
}

void Fade(double factor, float* value) {
  StoreDouble(value + ValueLayout::kShow, LoadShow(value) * factor);
  StoreDouble(value + ValueLayout::kClick, LoadClick(value) * factor);
}

// Days from the last seen day to today; 0 if that day is after today.
double DaysBack(float last_seen, uint32_t day) {
  return std::max(0.0, static_cast<double>(day) - double{last_seen});
}

}  // namespace

CtrBounds::CtrBounds(const v1::CtrRules& rules)
    : base_threshold(rules.has_base_threshold() ? rules.base_threshold() : 1.5f),
      delta_threshold(rules.has_delta_threshold() ? rules.delta_threshold() : 0.25f),
      delta_keep_days(rules.has_delta_keep_days() ? rules.delta_keep_days() : 16.0f),
      decay_rate(rules.has_show_click_decay_rate() ? rules.show_click_decay_rate() : 0.98f),
      delete_threshold(rules.has_delete_threshold() ? rules.delete_threshold() : 0.8f),
      delete_after_unseen_days(
          rules.has_delete_after_unseen_days() ? rules.delete_after_unseen_days() : 30.0f) {}

absl::Status CheckDay(const v1::TableSpec& table, uint32_t day) {
  if (!table.ctr().day_id_decay()) return absl::OkStatus();
  const double least = 2.0 * CtrBounds(table.ctr()).delta_keep_days;
  if (day > least && day <= kMaxDay) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "table '", table.name(), "' stores the day on which a row was last seen (day_id_decay); day ",
      day, " is out of range: it must be above ", least, " and at most ", kMaxDay,
      "; pass today's number, counted as in training (e.g. days since 1970)"));
}

CtrLifecycle::Age CtrLifecycle::AgeOf(const float* value) const {
  const float cell = value[ValueLayout::kUnseenDays];
  if (!is_day_id() || cell < bounds_.delta_keep_days) return {cell, 1.0};
  const double days = DaysBack(cell, day_);
  return {static_cast<float>(days), std::pow(bounds_.decay_rate, days)};
}

double CtrLifecycle::Score(const float* value, double fade) const {
  return layout_->Score(LoadShow(value) * fade, LoadClick(value) * fade);
}

bool CtrLifecycle::IsSaved(v1::SaveMode mode, const float* value) const {
  if (mode != v1::DELTA && mode != v1::BASE) return true;
  const Age age = AgeOf(value);
  const float least_delta = mode == v1::DELTA ? bounds_.delta_threshold : 0.0f;
  return Score(value, age.fade) >= bounds_.base_threshold &&
         value[ValueLayout::kDeltaScore] >= least_delta &&
         age.unseen_days <= bounds_.delta_keep_days;
}

bool CtrLifecycle::UpdateAfterSave(v1::SaveMode mode, float* value) const {
  if (mode == v1::BATCH && !is_day_id()) {
    value[ValueLayout::kUnseenDays] += 1.0f;
    return true;
  }
  if (mode != v1::DELTA && mode != v1::BASE) return false;
  if (value[ValueLayout::kDeltaScore] == 0.0f || !IsSaved(mode, value)) return false;
  value[ValueLayout::kDeltaScore] = 0.0f;
  return true;
}

CtrLifecycle::Counts CtrLifecycle::CountsOf(const float* value) const {
  const double fade = AgeOf(value).fade;
  return {LoadShow(value) * fade, LoadClick(value) * fade};
}

bool CtrLifecycle::Shrink(float* value) const {
  if (is_day_id()) {
    GiveDay(value);
  } else {
    Fade(bounds_.decay_rate, value);
  }
  const Age age = AgeOf(value);
  return Score(value, age.fade) >= bounds_.delete_threshold &&
         age.unseen_days <= bounds_.delete_after_unseen_days;
}

// Converts a count of unseen days into a day number. show and click, which are as of today, are
// scaled back to that day, so that reading them decays them again.
void CtrLifecycle::GiveDay(float* value) const {
  const float unseen = value[ValueLayout::kUnseenDays];
  if (unseen >= bounds_.delta_keep_days) return;
  const double back = 1.0 / std::pow(bounds_.decay_rate, double{unseen});
  if (!std::isfinite(LoadShow(value) * back) || !std::isfinite(LoadClick(value) * back)) return;
  Fade(back, value);
  value[ValueLayout::kUnseenDays] = static_cast<float>(day_) - unseen;
}

}  // namespace cistern
