#include "cli/terminal/interrupt.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

namespace cistern {
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

TEST(CatchInterruptsDeathTest, TheSecondSignalEndsTheProcessThoughTheFlagWasPolled) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(InterruptTwice(), testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace cistern
