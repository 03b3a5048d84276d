#include "cli/terminal/interrupt.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

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

// Sends SIGTERM after Ctrl-C: once, as a shell does, or until the process ends, as a supervisor
// does.
[[noreturn]] void TerminateAfterCtrlC(bool until_it_ends) {
  CatchInterrupts();
  std::raise(SIGINT);
  do {
    std::raise(SIGTERM);
  } while (until_it_ends);
  std::exit(4);
}

TEST(CatchInterruptsDeathTest, TheSecondSignalEndsTheProcessThoughTheFlagWasPolled) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(InterruptTwice(), testing::KilledBySignal(SIGINT), "");
}

TEST(CatchInterruptsDeathTest, TheSecondSignalMayBeOfTheOtherKind) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(TerminateAfterCtrlC(/*until_it_ends=*/true), testing::KilledBySignal(SIGTERM), "");
}

TEST(CatchInterruptsDeathTest, CtrlCThatALauncherFollowsWithSigtermIsOneStop) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(TerminateAfterCtrlC(/*until_it_ends=*/false), testing::ExitedWithCode(4), "");
}

}  // namespace
}  // namespace cistern::cli
