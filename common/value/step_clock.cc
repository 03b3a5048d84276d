#include "common/value/step_clock.h"

#include <algorithm>
#include <cmath>

namespace cistern {
namespace {

LearningRateSchedule ScheduleOf(const v1::RateSegment& segment) {
  LearningRateSchedule schedule;
  schedule.base = segment.base();
  schedule.warmup_steps = segment.warmup_steps();
  schedule.decay_start = segment.decay_start();
  schedule.decay_steps = segment.decay_steps();
  schedule.decay_power = segment.decay_power();
  schedule.end = segment.end();
  return schedule;
}

v1::RateSegment SegmentOf(uint64_t from, const LearningRateSchedule& schedule, double scale) {
  v1::RateSegment segment;
  segment.set_from_step(from);
  segment.set_base(schedule.base);
  segment.set_warmup_steps(schedule.warmup_steps);
  segment.set_decay_start(schedule.decay_start);
  segment.set_decay_steps(schedule.decay_steps);
  segment.set_decay_power(schedule.decay_power);
  segment.set_end(schedule.end);
  segment.set_scale(scale);
  return segment;
}

const v1::RateHistory& HistoryOf(const v1::StepClock& clock, TableId table) {
  const int i = static_cast<int>(table);
  return i < clock.rates_size() ? clock.rates(i) : v1::RateHistory::default_instance();
}

// Steps of segments may descend, or exceed the clock's step: a training that returned to its best
// epoch has such a history.
absl::Status CheckHistory(const v1::RateHistory& history) {
  if (history.segments_size() > kMaxRateSegments) {
    return absl::InvalidArgumentError(
        absl::StrCat(history.segments_size(), " segments; the limit is ", kMaxRateSegments));
  }
  for (const v1::RateSegment& segment : history.segments()) {
    if (segment.from_step() < 1 || segment.from_step() > kMaxSteps + 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a segment begins at step ", segment.from_step(), "; steps are 1 to ", kMaxSteps));
    }
    for (const double number :
         {segment.base(), segment.decay_power(), segment.end(), segment.scale()}) {
      if (!std::isfinite(number)) {
        return absl::InvalidArgumentError("a rate is not a finite number");
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckStepClock(const v1::StepClock& clock, const v1::Schema& schema) {
  if (clock.step() > kMaxSteps) {
    return absl::InvalidArgumentError(
        absl::StrCat("step ", clock.step(), " is above the limit of ", kMaxSteps));
  }
  if (clock.rates_size() > schema.tables_size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rates of ", clock.rates_size(), " tables; the schema has ", schema.tables_size()));
  }
  for (int i = 0; i < clock.rates_size(); ++i) {
    CISTERN_RETURN_IF_ERROR(
        AddContext(CheckHistory(clock.rates(i)), absl::StrCat("rates of table ", i)));
  }
  return absl::OkStatus();
}

StepSizes::StepSizes(const RuleParams& rule)
    : rule_(rule), fading_steps_(FadingSteps(rule)), step_floats_(InfoOf(rule.kind).step_floats) {}

void StepSizes::Restore(const v1::RateHistory& history, uint64_t step) {
  history_.Clear();
  sizes_.clear();
  const bool known = history.segments_size() > 0;
  step_ = known ? std::min(step, history.segments(0).from_step() - 1) : step;
  if (InfoOf(rule_.kind).step_sizes_vary) sizes_.resize(step_ * step_floats_, 0.0f);
  for (int i = 0; i < history.segments_size() && step_ < step; ++i) {
    const bool last = i + 1 == history.segments_size();
    const uint64_t next = last ? step + 1 : history.segments(i + 1).from_step();
    if (next <= step_ + 1) continue;  // an empty segment: the next one replaces it at once
    Advance(std::min(step, next - 1), ScheduleOf(history.segments(i)), history.segments(i).scale());
  }
}

void StepSizes::Advance(uint64_t step, const LearningRateSchedule& schedule, double scale) {
  if (step <= step_) return;
  const int count = history_.segments_size();
  const bool same = count > 0 && ScheduleOf(history_.segments(count - 1)) == schedule &&
                    history_.segments(count - 1).scale() == scale;
  if (!same) *history_.add_segments() = SegmentOf(step_ + 1, schedule, scale);
  step_ = step;
  if (InfoOf(rule_.kind).step_sizes_vary) Fill(schedule, scale);
}

void StepSizes::Fill(const LearningRateSchedule& schedule, double scale) {
  for (uint64_t t = sizes_.size() / step_floats_ + 1; t <= step_; ++t) {
    AppendStep(rule_, schedule.At(t) * scale, t, &sizes_);
  }
}

RowReader::RowReader(const ValueLayout& layout, const v1::StepClock& clock, TableId table)
    : changes_(layout.rule().update_type != UpdateType::kLocal && clock.step() > 0),
      dim_(layout.dim()),
      weight_index_(layout.weight_index()),
      state_index_(layout.state_index()),
      sizes_(layout.rule()) {
  if (changes_) sizes_.Restore(HistoryOf(clock, table), clock.step());
}

void RowReader::BringUp(float* value) const {
  if (!changes_) return;
  sizes_.ApplyDeferred(sizes_.step(), sizes_.step(), dim_, value + weight_index_,
                       value + state_index_);
}

void MarkRow(const ValueLayout& layout, uint64_t step, float* value) {
  if (layout.rule().update_type == UpdateType::kLocal) return;
  value[layout.state_index() + layout.state_floats() - 1] = static_cast<float>(step);
}

}  // namespace cistern
