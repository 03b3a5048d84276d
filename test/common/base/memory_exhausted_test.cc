#include "common/base/memory_exhausted.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

namespace cistern {
namespace {

[[noreturn]] void Refuse() {
  throw std::bad_alloc();
}

void Prepare() {
  ExplainMemoryExhaustion("cistern-server", "lower --staged_limit_mb");
}

TEST(ExplainMemoryExhaustion, ReportsTheLimitForAnUncaughtBadAlloc) {
  EXPECT_EXIT(
      {
        Prepare();
        const auto ask = []() noexcept { Refuse(); };
        ask();
      },
      testing::ExitedWithCode(1),
      "cistern-server: out of memory: an allocation failed; the process uses [0-9]+ MB.*"
      "or lower --staged_limit_mb");
}

TEST(ExplainMemoryExhaustion, DoesNotChangeOtherFaults) {
  EXPECT_EXIT(
      {
        Prepare();
        std::abort();
      },
      testing::KilledBySignal(SIGABRT), "");
}

TEST(EndWithMessage, PrintsTheReason) {
  EXPECT_EXIT(
      {
        Prepare();
        EndWithMessage("tables were being changed");
      },
      testing::ExitedWithCode(1), "out of memory: tables were being changed");
}

}  // namespace
}  // namespace cistern
