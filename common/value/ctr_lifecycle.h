// The life of a ctr value besides training (PSLib's CtrAccessor: Save, UpdateStatAfterSave,
// Shrink): which saves hold it, what a save does to its statistics, how it fades and when it goes.
//
//   score          (show - click) * nonclk_coeff + click * click_coeff
//   save DELTA     score >= base_threshold, delta_score >= delta_threshold, unseen <=
//   delta_keep_days save BASE      the same with a delta_threshold of 0; ALL and BATCH hold every
//   value after a save   DELTA, BASE: delta_score = 0 where the save held the value; BATCH: unseen
//   + 1 shrink         show and click * show_click_decay_rate first; then the value goes if
//                  score < delete_threshold or unseen > delete_after_unseen_days
//
// Two forms of the cell unseen_days. A count of days, which BATCH raises and a push sets to 0: show
// and click fade where they are stored, once each shrink. Or, with CtrRules.day_id_decay, the
// number of the day on which the value was seen last: unseen = today - last, show and click are
// stored as of that day, and fade by rate^(today - last) where they are read; only a push stores
// the faded numbers, so a shrink or a save may be repeated. (PSLib deletes values that were seen
// after today; here they count as seen today, so a day typed too small removes nothing.)
//
// In the second form a cell below delta_keep_days is still a count, of a table that was trained in
// the first form: such a value has faded already, up to today. The next shrink gives it its day.
#pragma once

#include "common/value/value_layout.h"
#include "proto/control_plane.pb.h"

namespace cistern {

// Constants of CtrRules with the defaults for those that are not set (PSLib's).
struct CtrBounds {
  explicit CtrBounds(const v1::CtrRules& rules);

  float base_threshold, delta_threshold, delta_keep_days;
  double decay_rate;
  float delete_threshold, delete_after_unseen_days;
};

// OK if `day` can be today for a table of these rules: any where unseen_days is a count; else a
// number above twice delta_keep_days, so that no day looks like a count, and up to 2^24, all of
// which a float can tell apart.
absl::Status CheckDay(const v1::TableSpec& table, uint32_t day);

// Threads: immutable; any thread.
class CtrLifecycle {
 public:
  // layout: of a ctr table; outlives this. day: today, checked by CheckDay.
  CtrLifecycle(const ValueLayout* layout, uint32_t day)
      : layout_(layout), bounds_(layout->ctr()), day_(day) {}

  // Whether a save of `mode` holds this value.
  bool IsSaved(v1::SaveMode mode, const float* value) const;
  // Does to the value what follows such a save; whether that changed it.
  bool UpdateAfterSave(v1::SaveMode mode, float* value) const;
  // Fades the value; false if it is no longer worth keeping.
  bool Shrink(float* value) const;

 private:
  // How long ago a value was seen, and what is left of its show and click.
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
