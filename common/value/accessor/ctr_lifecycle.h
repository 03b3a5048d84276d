// The lifecycle of a ctr value outside training (PSLib's CtrAccessor: Save, UpdateStatAfterSave,
// Shrink): which saves include it, how a save changes its statistics, how it decays and when it is
// deleted.
//
// clang-format off
//   score          (show - click) * nonclk_coeff + click * click_coeff
//   save DELTA     values with score >= base_threshold, delta_score >= delta_threshold and
//                  unseen <= delta_keep_days
//   save BASE      the same with a delta_threshold of 0
//   save ALL       every value
//   save BATCH     every value
//   after a save   DELTA, BASE: delta_score = 0 in each saved value; BATCH: unseen + 1
//   shrink         multiplies show and click by show_click_decay_rate; then deletes the value if
//                  score < delete_threshold or unseen > delete_after_unseen_days
// clang-format on
//
// The cell unseen_days has two forms. (1) A count of days, which BATCH increments and a push resets
// to 0; each shrink decays the stored show and click. (2) With CtrRules.day_id_decay, the number of
// the day on which the value was last seen: unseen = today - last. show and click are stored as of
// that day and are decayed by rate^(today - last) when they are read. Only a push stores the
// decayed numbers, so a shrink or a save may be repeated. (PSLib deletes values that were seen
// after today. Here they count as seen today, so a day typed too small deletes nothing.)
//
// In form (2) a cell below delta_keep_days is still a count, left by training in form (1). Such a
// value has already decayed up to today. The next shrink converts the count to a day number.
#pragma once

#include "common/value/row_lifecycle.h"
#include "common/value/value_layout.h"

namespace cistern {

// The constants of CtrRules, with PSLib's defaults for those that are not set.
struct CtrBounds {
  explicit CtrBounds(const v1::CtrRules& rules);

  float base_threshold, delta_threshold, delta_keep_days;
  double decay_rate;
  float delete_threshold, delete_after_unseen_days;
};

// Threads: immutable; any thread.
class CtrLifecycle : public RowLifecycle {
 public:
  // layout: of a ctr table; outlives this. day: today's number, validated by CtrAccessor::CheckDay.
  CtrLifecycle(const ValueLayout* layout, uint32_t day)
      : layout_(layout), bounds_(layout->ctr()), day_(day) {}

  bool IsSaved(v1::SaveMode mode, const float* value) const override;
  bool UpdateAfterSave(v1::SaveMode mode, float* value) const override;
  bool Shrink(float* value) const override;
  bool WouldKeep(const float* value) const override;
  // With day_id_decay, decayed to today.
  Counts CountsOf(const float* value) const override;
  uint32_t DayOf(const float* value) const override;

 private:
  // How long ago a value was seen, and the factor to apply to its show and click.
  struct Age {
    float unseen_days;
    double fade;
  };
  bool is_day_id() const { return layout_->ctr().day_id_decay(); }
  Age AgeOf(const float* value) const;
  double Score(const float* value, double fade) const;
  void GiveDay(float* value) const;

  const ValueLayout* const layout_;
  const CtrBounds bounds_;
  const uint32_t day_;
};

}  // namespace cistern
