#include "common/value/learning_rate.h"

#include <gtest/gtest.h>

namespace cistern {
namespace {

TEST(LearningRateSchedule, WarmsUpHoldsAndDecays) {
  LearningRateSchedule schedule;
  schedule.base = 24;
  schedule.warmup_steps = 8000;
  schedule.decay_start = 48000;
  schedule.decay_steps = 24000;
  EXPECT_DOUBLE_EQ(schedule.At(1), 24.0 / 8000);
  EXPECT_DOUBLE_EQ(schedule.At(4000), 12);
  EXPECT_DOUBLE_EQ(schedule.At(8000), 24);
  EXPECT_DOUBLE_EQ(schedule.At(48000), 24);
  EXPECT_DOUBLE_EQ(schedule.At(60000), 24 * 0.25);  // half the way, squared
  EXPECT_DOUBLE_EQ(schedule.At(72000), 0);
  EXPECT_DOUBLE_EQ(schedule.At(100000), 0);
  schedule.end = 3;
  EXPECT_DOUBLE_EQ(schedule.At(71999), 3);
}

TEST(LearningRateSchedule, DefaultIsConstant) {
  LearningRateSchedule schedule;
  schedule.base = 0.1;
  EXPECT_DOUBLE_EQ(schedule.At(1), 0.1);
  EXPECT_DOUBLE_EQ(schedule.At(1000000), 0.1);
}

}  // namespace
}  // namespace cistern
