#include "worker/train/run_times.h"

#include <gtest/gtest.h>

namespace cistern {
namespace {

SteadyTime At(double seconds) {
  return SteadyTime() + std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

TEST(RunTimes, APassHasItsOwnShares) {
  RunTimes times(At(1));
  times.Start(At(3));
  times.AddIdle({.data = 1});
  times.AddIdle({.pull = 0.5});
  times.AddBusy(2);
  const RunTimes::Shares first = times.EndPass(At(7));
  EXPECT_EQ(first.idle, (IdleTimes{.data = 0.25, .pull = 0.125}));
  EXPECT_EQ(first.idle_seconds, (IdleTimes{.data = 1, .pull = 0.5}));
  EXPECT_EQ(first.busy.seconds, 2);
  EXPECT_EQ(first.busy.share, 0.5);
  times.AddIdle({.commit = 0.5});
  times.AddBusy(1.5);
  const RunTimes::Shares second = times.EndPass(At(9));
  EXPECT_EQ(second.idle, (IdleTimes{.commit = 0.25}));
  EXPECT_EQ(second.busy.share, 0.75);
}

TEST(RunTimes, ARunLastsFromItsFirstStepToItsLastCommit) {
  RunTimes times(At(1));
  times.EndPass(At(2));  // the line of a pass that an earlier process trained
  times.Start(At(3));
  EXPECT_EQ(times.first_step_seconds(), 2);
  times.AddIdle({.data = 1});
  times.AddBusy(4);
  times.EndPass(At(6));
  times.AddIdle({.data = 1, .commit = 2});
  times.AddBusy(1);
  times.End(At(13));
  EXPECT_EQ(times.shares().idle, (IdleTimes{.data = 0.2, .commit = 0.2}));
  EXPECT_EQ(times.shares().busy.seconds, 5);
  EXPECT_EQ(times.shares().busy.share, 0.5);
}

TEST(RunTimes, ARunWithoutAStepHasNoShares) {
  RunTimes times(At(1));
  EXPECT_EQ(times.first_step_seconds(), 0);
  EXPECT_EQ(times.shares().idle, IdleTimes());
  EXPECT_EQ(times.shares().busy.share, 0);
}

}  // namespace
}  // namespace cistern
