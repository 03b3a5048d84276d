#include "common/base/low_priority.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <thread>

namespace cistern {
namespace {

int Nice() {
  return getpriority(PRIO_PROCESS, static_cast<id_t>(gettid()));
}

TEST(LowerPriority, ConcernsTheThreadAndThoseThatItStarts) {
  const int before = Nice();
  int lowered = 0, again = 0, child = 0;
  std::thread([&] {
    LowerPriority();
    lowered = Nice();
    LowerPriority();
    again = Nice();
    std::thread([&] { child = Nice(); }).join();
  }).join();
  EXPECT_GE(lowered, 10);
  EXPECT_EQ(again, lowered);
  EXPECT_EQ(child, lowered);
  EXPECT_EQ(Nice(), before);
}

TEST(RunWhenIdle, ConcernsTheThreadAndThoseThatItStarts) {
  const int before = sched_getscheduler(0);
  int idle = -1, child = -1, lowered = -1;
  std::thread([&] {
    RunWhenIdle();
    idle = sched_getscheduler(0);
    std::thread([&] { child = sched_getscheduler(0); }).join();
    LowerPriority();
    lowered = sched_getscheduler(0);
  }).join();
  EXPECT_EQ(idle, SCHED_IDLE);
  EXPECT_EQ(child, SCHED_IDLE);
  EXPECT_EQ(lowered, SCHED_IDLE);
  EXPECT_EQ(sched_getscheduler(0), before);
}

}  // namespace
}  // namespace cistern
