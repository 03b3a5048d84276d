#include "common/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "common/base/gate.h"

namespace cistern {
namespace {

TEST(ThreadPool, ParallelForVisitsEachIndexOnce) {
  for (const int threads : {0, 1, 2, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.thread_num(), std::max(threads, 1));
    for (const size_t n : {0u, 1u, 2u, 3u, 1000u}) {
      std::vector<std::atomic<int>> visits(n);
      pool.ParallelFor(n, [&](size_t i) { ++visits[i]; });
      for (const std::atomic<int>& count : visits) EXPECT_EQ(count, 1);
    }
  }
}

TEST(ThreadPool, ParallelForMayBeCalledFromManyThreads) {
  ThreadPool pool(2);
  std::atomic<uint64_t> sum{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        pool.ParallelFor(100, [&](size_t i) { sum += i; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 4u * 50 * 4950);
}

TEST(ThreadPool, DestructorRunsQueuedWork) {
  std::atomic<int> done{0};
  {
    ThreadPool pool(2);
    for (int i = 0; i < 1000; ++i) pool.Run([&] { ++done; });
  }
  EXPECT_EQ(done, 1000);
}

TEST(Gate, CloseWaitsForEverythingThatEntered) {
  Gate gate;
  ASSERT_TRUE(gate.Enter());
  std::atomic<bool> leaving{false}, left_before_closed{false};
  std::thread closer([&] {
    gate.Close();
    left_before_closed = leaving.load();
  });
  while (gate.Enter()) gate.Leave();  // refused as soon as Close has begun
  leaving = true;
  gate.Leave();
  closer.join();
  EXPECT_TRUE(left_before_closed);
  EXPECT_FALSE(gate.Enter());
  gate.Close();  // again
}

TEST(Gate, ClosesAtOnceWhenEmpty) {
  Gate gate;
  ASSERT_TRUE(gate.Enter());
  gate.Leave();
  gate.Close();
  EXPECT_FALSE(gate.Enter());
}

}  // namespace
}  // namespace cistern
