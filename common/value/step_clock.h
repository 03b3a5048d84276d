// How far training is, and with which step sizes it got there: for rows that make up missed steps
// (common/value/deferred_updates.h), wherever they are read.
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

// The most steps that a clock counts, and the most times that a rate may change: step sizes take
// memory and time by both.
inline constexpr uint64_t kMaxSteps = uint64_t{1} << 30;
inline constexpr int kMaxRateSegments = 1 << 16;

// kInvalidArgument, with the field, for a clock that no training of these tables can have reached:
// too many steps, rates of more tables than there are, segments of step 0 or beyond any, rates that
// are not numbers.
absl::Status CheckStepClock(const v1::StepClock& clock, const v1::Schema& schema);

// The step sizes of one table, from step 1 on. Learning rates are kept as the few schedules that
// they follow (v1::RateHistory); the sizes are computed from these, to the same bits everywhere.
//
// Threads: one at a time.
class StepSizes {
 public:
  explicit StepSizes(const RuleParams& rule);

  // Steps 1 .. step of a run with these rates. Steps before the first of them, of a rate that is
  // not known, have size 0: what rows missed then is not made up.
  void Restore(const v1::RateHistory& history, uint64_t step);

  // Goes on to step `step`, with this rate for all steps from the one after step() on.
  void Advance(uint64_t step, const LearningRateSchedule& schedule, double scale);

  uint64_t step() const { return step_; }
  const v1::RateHistory& history() const { return history_; }

  // Brings a row to the end of step `to` <= step() and marks it as part of step `mark`.
  // weight: [n], state: [RowStateFloats(rule, n)].
  void ApplyDeferred(uint64_t to, uint64_t mark, uint32_t n, float* weight, float* state) const {
    ApplyDeferredUpdatesToRow(rule_, sizes_.data(), fading_steps_, to, mark, n, weight, state);
  }
  // For ops: StepSize() of step t at t - 1 (empty where the rule is not Adam), and FadingSteps().
  const float* sizes() const { return sizes_.data(); }
  size_t size() const { return sizes_.size(); }
  uint64_t fading_steps() const { return fading_steps_; }

 private:
  // Sizes of the steps after those there are, up to step_.
  void Fill(const LearningRateSchedule& schedule, double scale);

  const RuleParams rule_;
  const uint64_t fading_steps_;
  uint64_t step_ = 0;
  v1::RateHistory history_;
  std::vector<float> sizes_;
};

// Brings whole values of one table to the state that a step over every row would have left at the
// clock's step. Nothing to do for tables that make nothing up.
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

// A row that comes from a saved model was brought up when it was saved: from here on it counts as
// part of step `step`.
void MarkRow(const ValueLayout& layout, uint64_t step, float* value);

}  // namespace cistern
