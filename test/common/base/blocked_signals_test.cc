#include "common/base/blocked_signals.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <thread>

namespace cistern {
namespace {

bool IsBlocked(int signal) {
  sigset_t mask;
  EXPECT_EQ(pthread_sigmask(SIG_BLOCK, nullptr, &mask), 0);
  return sigismember(&mask, signal) == 1;
}

TEST(BlockedSignals, BlocksUntilTheOutermostScopeEnds) {
  ASSERT_FALSE(IsBlocked(SIGTERM));
  {
    const BlockedSignals outer;
    {
      const BlockedSignals inner;
      EXPECT_TRUE(IsBlocked(SIGTERM));
      EXPECT_TRUE(IsBlocked(SIGPROF));
      EXPECT_FALSE(IsBlocked(SIGSEGV));
    }
    EXPECT_TRUE(IsBlocked(SIGTERM));
  }
  EXPECT_FALSE(IsBlocked(SIGTERM));
}

TEST(BlockedSignals, KeepsWhatTheCallerHadBlocked) {
  sigset_t own, before;
  sigemptyset(&own);
  sigaddset(&own, SIGUSR2);
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &own, &before), 0);
  { const BlockedSignals blocked; }
  EXPECT_TRUE(IsBlocked(SIGUSR2));
  EXPECT_FALSE(IsBlocked(SIGTERM));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(BlockSignalsOfPoolThread, ChangesThatThreadOnly) {
  std::thread([] {
    BlockSignalsOfPoolThread();
    { const BlockedSignals blocked; }
    EXPECT_TRUE(IsBlocked(SIGINT));
  }).join();
  EXPECT_FALSE(IsBlocked(SIGINT));
}

}  // namespace
}  // namespace cistern
