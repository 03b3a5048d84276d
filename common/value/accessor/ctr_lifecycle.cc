#include "common/value/accessor/ctr_lifecycle.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "common/value/accessor/ctr_accessor.h"
#include "proto/control_plane.pb.h"

namespace cistern {
namespace {

double LoadShow(const float* value) {
  return LoadDouble(value + CtrCells::kShow);
}
double LoadClick(const float* value) {
  return LoadDouble(value + CtrCells::kClick);
}

void Fade(double factor, float* value) {
  StoreDouble(value + CtrCells::kShow, LoadShow(value) * factor);
  StoreDouble(value + CtrCells::kClick, LoadClick(value) * factor);
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

CtrLifecycle::Age CtrLifecycle::AgeOf(const float* value) const {
  const float cell = value[CtrCells::kUnseenDays];
  if (!is_day_id() || cell < bounds_.delta_keep_days) return {cell, 1.0};
  const double days = DaysBack(cell, day_);
  return {static_cast<float>(days), std::pow(bounds_.decay_rate, days)};
}

double CtrLifecycle::Score(const float* value, double fade) const {
  return CtrScore(layout_->ctr(), LoadShow(value) * fade, LoadClick(value) * fade);
}

bool CtrLifecycle::IsSaved(v1::SaveMode mode, const float* value) const {
  if (mode != v1::DELTA && mode != v1::BASE) return true;
  const Age age = AgeOf(value);
  const float least_delta = mode == v1::DELTA ? bounds_.delta_threshold : 0.0f;
  return Score(value, age.fade) >= bounds_.base_threshold &&
         value[CtrCells::kDeltaScore] >= least_delta && age.unseen_days <= bounds_.delta_keep_days;
}

bool CtrLifecycle::UpdateAfterSave(v1::SaveMode mode, float* value) const {
  if (mode == v1::BATCH && !is_day_id()) {
    value[CtrCells::kUnseenDays] += 1.0f;
    return true;
  }
  if (mode != v1::DELTA && mode != v1::BASE) return false;
  if (value[CtrCells::kDeltaScore] == 0.0f || !IsSaved(mode, value)) return false;
  value[CtrCells::kDeltaScore] = 0.0f;
  return true;
}

RowLifecycle::Counts CtrLifecycle::CountsOf(const float* value) const {
  const double fade = AgeOf(value).fade;
  return {LoadShow(value) * fade, LoadClick(value) * fade};
}

uint32_t CtrLifecycle::DayOf(const float* value) const {
  if (!is_day_id()) return 0;
  const float day = value[CtrCells::kUnseenDays];
  return day > 0 ? static_cast<uint32_t>(std::min(day, float{kMaxDay})) : 0;
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

bool CtrLifecycle::WouldKeep(const float* value) const {
  std::array<float, CtrCells::kEmbedW> statistics;  // the only cells that a shrink reads and writes
  std::copy_n(value, statistics.size(), statistics.begin());
  return Shrink(statistics.data());
}

// Converts a count of unseen days into a day number. show and click, which are as of today, are
// scaled back to that day, so that reading them decays them again.
void CtrLifecycle::GiveDay(float* value) const {
  const float unseen = value[CtrCells::kUnseenDays];
  if (unseen >= bounds_.delta_keep_days) return;
  const double back = 1.0 / std::pow(bounds_.decay_rate, double{unseen});
  if (!std::isfinite(LoadShow(value) * back) || !std::isfinite(LoadClick(value) * back)) return;
  Fade(back, value);
  value[CtrCells::kUnseenDays] = static_cast<float>(day_) - unseen;
}

}  // namespace cistern
