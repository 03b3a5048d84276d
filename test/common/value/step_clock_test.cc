#include "common/value/step_clock.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

namespace cistern {
namespace {

RuleParams GlobalAdam() {
  RuleParams rule;
  rule.kind = RuleKind::kAdam;
  rule.update_type = UpdateType::kGlobal;
  return rule;
}

LearningRateSchedule Schedule(double base) {
  LearningRateSchedule schedule;
  schedule.base = base;
  schedule.warmup_steps = 4;
  schedule.decay_start = 10;
  schedule.decay_steps = 100;
  return schedule;
}

std::vector<float> Sizes(const StepSizes& sizes) {
  return {sizes.sizes(), sizes.sizes() + sizes.step()};
}

TEST(StepSizes, FollowTheRuleAndTheSchedule) {
  StepSizes sizes(GlobalAdam());
  sizes.Advance(20, Schedule(0.1), 0.5);
  ASSERT_EQ(sizes.step(), 20u);
  for (uint64_t t = 1; t <= 20; ++t) {
    EXPECT_EQ(sizes.sizes()[t - 1], StepSize(GlobalAdam(), Schedule(0.1).At(t) * 0.5, t)) << t;
  }
}

TEST(StepSizes, AreStoredAsTheSchedulesThatTheyFollow) {
  StepSizes sizes(GlobalAdam());
  for (uint64_t t = 1; t <= 30; ++t) sizes.Advance(t, Schedule(0.1), t <= 12 ? 1.0 : 0.1);
  for (uint64_t t = 31; t <= 40; ++t) sizes.Advance(t, Schedule(0.2), 0.1);
  ASSERT_EQ(sizes.history().segments_size(), 3);
  EXPECT_EQ(sizes.history().segments(1).from_step(), 13u);
  EXPECT_EQ(sizes.history().segments(2).from_step(), 31u);
}

TEST(StepSizes, AreRestoredFromTheirHistory) {
  StepSizes sizes(GlobalAdam());
  for (uint64_t t = 1; t <= 40; ++t) sizes.Advance(t, Schedule(0.1), t <= 12 ? 1.0 : 0.3);
  StepSizes again(GlobalAdam());
  again.Restore(sizes.history(), 40);
  EXPECT_EQ(Sizes(again), Sizes(sizes));
  again.Advance(50, Schedule(0.1), 0.3);
  sizes.Advance(50, Schedule(0.1), 0.3);
  EXPECT_EQ(Sizes(again), Sizes(sizes));
  EXPECT_EQ(again.history().SerializeAsString(), sizes.history().SerializeAsString());
}

// A run that returns to an earlier step forgets the later ones.
TEST(StepSizes, AreRestoredUpToAnEarlierStep) {
  StepSizes sizes(GlobalAdam());
  for (uint64_t t = 1; t <= 40; ++t) sizes.Advance(t, Schedule(0.1), t <= 12 ? 1.0 : 0.3);
  StepSizes early(GlobalAdam());
  early.Restore(sizes.history(), 9);
  EXPECT_EQ(early.step(), 9u);
  EXPECT_EQ(early.history().segments_size(), 1);
  std::vector<float> first = Sizes(sizes);
  first.resize(9);
  EXPECT_EQ(Sizes(early), first);
}

TEST(StepSizes, StepsWithAnUnknownRateHaveSizeZero) {
  StepSizes sizes(GlobalAdam());
  sizes.Restore(v1::RateHistory(), 5);
  sizes.Advance(6, Schedule(0.1), 1);
  ASSERT_EQ(sizes.step(), 6u);
  EXPECT_EQ(sizes.sizes()[4], 0.0f);
  EXPECT_GT(sizes.sizes()[5], 0.0f);
  StepSizes again(GlobalAdam());  // from the history with the one known rate
  again.Restore(sizes.history(), 6);
  EXPECT_EQ(Sizes(again), Sizes(sizes));
}

v1::TableSpec Spec(v1::UpdateRule::Missed missed) {
  v1::TableSpec spec;
  spec.set_name("deep");
  spec.set_dim(3);
  spec.mutable_rule()->set_kind(v1::UpdateRule::ADAM);
  spec.mutable_rule()->set_beta1(0.9f);
  spec.mutable_rule()->set_beta2(0.999f);
  spec.mutable_rule()->set_epsilon(1e-7f);
  if (missed != v1::UpdateRule::LOCAL) spec.mutable_rule()->set_missed(missed);
  return spec;
}

TEST(RowReader, AppliesDeferredUpdatesUpToTheClock) {
  const ValueLayout layout = ValueLayout::Create(Spec(v1::UpdateRule::GLOBAL)).value();
  ASSERT_EQ(layout.full_floats(), 10u);
  EXPECT_EQ(layout.FieldNames(true).back(), "last_step");
  StepSizes sizes(layout.rule());
  sizes.Advance(30, Schedule(0.1), 1);
  v1::StepClock clock;
  clock.set_step(30);
  clock.add_rates();                     // table 0 has no deferred updates
  *clock.add_rates() = sizes.history();  // table 1
  const std::vector<float> row = {1, 2, 3, 0.1f, 0.2f, -0.1f, 0.01f, 0.02f, 0.03f, 12};
  std::vector<float> value = row, expected = row;
  sizes.ApplyDeferred(30, 30, 3, expected.data(), expected.data() + 3);
  const RowReader reader(layout, clock, 1);
  EXPECT_TRUE(reader.changes());
  reader.BringUp(value.data());
  EXPECT_EQ(value, expected);
  EXPECT_NE(value[0], row[0]);
  EXPECT_EQ(value[9], 30.0f);
  reader.BringUp(value.data());  // no update is left
  EXPECT_EQ(value, expected);
}

TEST(RowReader, DoesNotChangeRowsOfOtherTables) {
  const ValueLayout layout = ValueLayout::Create(Spec(v1::UpdateRule::LOCAL)).value();
  v1::StepClock clock;
  clock.set_step(30);
  const RowReader reader(layout, clock, 0);
  EXPECT_FALSE(reader.changes());
  std::vector<float> value(layout.full_floats(), 0.5f);
  reader.BringUp(value.data());
  MarkRow(layout, 30, value.data());
  EXPECT_EQ(value, std::vector<float>(layout.full_floats(), 0.5f));
}

TEST(RowReader, MarkRowStoresTheStep) {
  const ValueLayout layout = ValueLayout::Create(Spec(v1::UpdateRule::LAZY_GLOBAL)).value();
  std::vector<float> value(layout.full_floats(), 0.5f);
  MarkRow(layout, 7, value.data());
  EXPECT_EQ(value.back(), 7.0f);
  EXPECT_EQ(value[layout.full_floats() - 2], 0.5f);
}

TEST(ValueLayout, OnlyRulesWithMomentumMoveUntouchedRows) {
  v1::TableSpec spec = Spec(v1::UpdateRule::GLOBAL);
  spec.mutable_rule()->set_kind(v1::UpdateRule::SGD);
  EXPECT_EQ(ValueLayout::Create(spec).status().code(), absl::StatusCode::kInvalidArgument);
  spec = Spec(v1::UpdateRule::GLOBAL);
  spec.mutable_rule()->set_weight_bound(10);
  EXPECT_FALSE(ValueLayout::Create(spec).ok());
  spec = Spec(v1::UpdateRule::GLOBAL);
  spec.set_accessor(v1::TableSpec::CTR);
  EXPECT_FALSE(ValueLayout::Create(spec).ok());
}

// The contents of a clock determine the memory and the time that its readers need.
TEST(CheckStepClock, RefusesClocksThatNoTrainingProduces) {
  v1::Schema schema;
  schema.add_tables();
  v1::StepClock good;
  good.set_step(100);
  v1::RateHistory* history = good.add_rates();
  history->add_segments()->set_from_step(1);
  history->add_segments()->set_from_step(50);
  EXPECT_EQ(CheckStepClock(good, schema), absl::OkStatus());
  EXPECT_EQ(CheckStepClock(v1::StepClock(), schema), absl::OkStatus());
  v1::StepClock went_back = good;  // returned to the best epoch
  went_back.set_step(40);
  went_back.mutable_rates(0)->add_segments()->set_from_step(41);
  EXPECT_EQ(CheckStepClock(went_back, schema), absl::OkStatus());

  const std::function<void(v1::StepClock&)> lies[] = {
      [](v1::StepClock& c) { c.set_step(uint64_t{1} << 63); },
      [](v1::StepClock& c) { c.set_step(kMaxSteps + 1); },
      [](v1::StepClock& c) { c.add_rates(); },
      [](v1::StepClock& c) { c.mutable_rates(0)->mutable_segments(0)->set_from_step(0); },
      [](v1::StepClock& c) { c.mutable_rates(0)->mutable_segments(1)->set_from_step(~0ull); },
      [](v1::StepClock& c) { c.mutable_rates(0)->mutable_segments(1)->set_base(NAN); },
      [](v1::StepClock& c) { c.mutable_rates(0)->mutable_segments(1)->set_scale(INFINITY); },
      [](v1::StepClock& c) {
        for (int i = 0; i <= kMaxRateSegments; ++i) {
          c.mutable_rates(0)->add_segments()->set_from_step(60);
        }
      },
  };
  for (const auto& lie : lies) {
    v1::StepClock clock = good;
    lie(clock);
    EXPECT_EQ(CheckStepClock(clock, schema).code(), absl::StatusCode::kInvalidArgument)
        << clock.ShortDebugString().substr(0, 200);
  }
}

}  // namespace
}  // namespace cistern
