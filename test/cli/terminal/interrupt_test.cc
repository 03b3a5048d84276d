#include "cli/terminal/interrupt.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

#include "absl/time/clock.h"

namespace cistern::cli {
namespace {

// In a process of its own, because the handlers stay.
[[noreturn]] void InterruptTwice() {
  const std::atomic<bool>* const interrupted = CatchInterrupts();
  if (interrupted->load()) std::exit(2);
  std::raise(SIGINT);
  // A loop that polls calls this again and again.
  if (!CatchInterrupts()->load()) std::exit(3);
  std::raise(SIGINT);
  std::exit(4);
}

// As a shell, or a supervisor that has lost patience.
[[noreturn]] void TerminateAfterCtrlC(absl::Duration later) {
  CatchInterrupts();
  std::raise(SIGINT);
  absl::SleepFor(later);
  std::raise(SIGTERM);
  std::exit(4);
}

TEST(CatchInterruptsDeathTest, TheSecondSignalEndsTheProcessThoughTheFlagWasPolled) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(InterruptTwice(), testing::KilledBySignal(SIGINT), "");
}

TEST(CatchInterruptsDeathTest, TheSecondSignalMayBeOfTheOtherKind) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(TerminateAfterCtrlC(absl::Seconds(1)), testing::KilledBySignal(SIGTERM), "");
}

TEST(CatchInterruptsDeathTest, CtrlCThatALauncherFollowsWithSigtermIsOneStop) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(TerminateAfterCtrlC(absl::ZeroDuration()), testing::ExitedWithCode(4), "");
}

}  // namespace
}  // namespace cistern::cli
