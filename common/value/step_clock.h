// The step clock: the number of the current training step and the step sizes up to it. Deferred
// updates (common/value/deferred_updates.h) need both wherever rows are read.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/status.h"
#include "common/base/types.h"
#include "common/value/deferred_updates.h"
#include "common/value/learning_rate.h"
#include "common/value/value_layout.h"
#include "proto/checkpoint.pb.h"
#include "proto/schema.pb.h"

namespace cistern {

// The maximum step of a clock and the maximum number of rate changes. Both bound the memory and the
// time that step sizes take.
inline constexpr uint64_t kMaxSteps = uint64_t{1} << 30;
// The highest number that a pass may have: passes after it can still be counted.
inline constexpr PassId kMaxPass = PassId{1} << 62;
inline constexpr int kMaxRateSegments = 1 << 16;

// kInvalidArgument, naming the field, for a clock that no training of these tables can produce: too
// many steps, rates for more tables than the schema has, segments that begin at step 0 or beyond
// the maximum, rates that are not finite.
absl::Status CheckStepClock(const v1::StepClock& clock, const v1::Schema& schema);

// The step sizes of one table, from step 1 on. Learning rates are stored as the few schedules that
// they follow (v1::RateHistory); the step sizes computed from them are bit-identical everywhere.
//
// Threads: one at a time.
class StepSizes {
 public:
  explicit StepSizes(const RuleParams& rule);

  // Restores steps 1 .. step of a run with these rates. Steps before the first segment, whose rate
  // is unknown, have size 0: deferred updates of these steps do not move weights.
  void Restore(const v1::RateHistory& history, uint64_t step);

  // Advances to `step`; the given rate applies to all steps after step().
  void Advance(uint64_t step, const LearningRateSchedule& schedule, double scale);

  uint64_t step() const { return step_; }
  const v1::RateHistory& history() const { return history_; }

  // Applies a row's deferred updates through step `to` <= step() and sets its last step to `mark`.
  // weight: [n], state: [RowStateFloats(rule, n)].
  void ApplyDeferred(uint64_t to, uint64_t mark, uint32_t n, float* weight, float* state) const {
    ApplyDeferredUpdatesToRow(rule_, sizes_.data(), fading_steps_, to, mark, n, weight, state);
  }
  // For ops: StepSize() of step t at index t - 1 (empty unless the rule is Adam; AdamW: what
  // AppendStep appends), and FadingSteps(). step_floats(): of a step.
  const float* sizes() const { return sizes_.data(); }
  size_t size() const { return sizes_.size(); }
  uint32_t step_floats() const { return step_floats_; }
  uint64_t fading_steps() const { return fading_steps_; }

 private:
  // Appends the missing sizes, up to step_.
  void Fill(const LearningRateSchedule& schedule, double scale);

  const RuleParams rule_;
  const uint64_t fading_steps_;
  const uint32_t step_floats_;
  uint64_t step_ = 0;
  v1::RateHistory history_;
  std::vector<float> sizes_;
};

// Applies the deferred updates to whole values of one table: afterwards they are as if every step
// up to the clock's had updated every row. Does nothing for tables without deferred updates.
//
// Threads: immutable after construction; any thread.
class RowReader {
 public:
  RowReader(const ValueLayout& layout, const v1::StepClock& clock, TableId table);

  bool changes() const { return changes_; }
  // value: layout.full_floats() cells.
  void BringUp(float* value) const;

 private:
  const bool changes_;
  const uint32_t dim_, weight_index_, state_index_;
  StepSizes sizes_;
};

// Sets the last step of a row from a saved model to `step`: its deferred updates were applied when
// it was saved.
void MarkRow(const ValueLayout& layout, uint64_t step, float* value);

}  // namespace cistern
