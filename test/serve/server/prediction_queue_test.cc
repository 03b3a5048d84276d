#include "serve/server/prediction_queue.h"

#include <gtest/gtest.h>

#include <atomic>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"

namespace cistern::serve {
namespace {

// Long enough for any machine; reached only by a test that fails.
constexpr absl::Duration kLimit = absl::Seconds(60);

TEST(PredictionQueue, RefusesBeyondItsLimitAtOnce) {
  absl::Notification release;
  std::atomic<int> ran{0};
  PredictionQueue queue(1, 3);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(queue
                    .Run([&] {
                      release.WaitForNotification();
                      ++ran;
                    })
                    .ok());
  }
  EXPECT_EQ(queue.in_flight(), 3u);
  EXPECT_TRUE(absl::IsResourceExhausted(queue.Run([&] { ++ran; })));
  release.Notify();
  EXPECT_TRUE(queue.Drain(absl::InfiniteDuration()));
  EXPECT_EQ(ran, 3);
}

TEST(PredictionQueue, AcceptsAgainOnceThereIsRoom) {
  PredictionQueue queue(2, 1);
  const absl::Time deadline = absl::Now() + kLimit;
  for (int i = 0; i < 100; ++i) {
    absl::Notification done;
    while (!queue.Run([&] { done.Notify(); }).ok()) {
      ASSERT_LT(absl::Now(), deadline) << "the queue is empty, and refuses prediction " << i;
      absl::SleepFor(absl::Microseconds(10));
    }
    ASSERT_TRUE(done.WaitForNotificationWithTimeout(kLimit)) << "prediction " << i << " never ran";
  }
}

TEST(PredictionQueue, DrainsWhatItHasAccepted) {
  absl::Notification release;
  PredictionQueue queue(1, 10);
  ASSERT_TRUE(queue.Run([&] { release.WaitForNotification(); }).ok());
  EXPECT_FALSE(queue.Drain(absl::Milliseconds(10)));
  EXPECT_TRUE(absl::IsUnavailable(queue.Run([] {})));
  release.Notify();
  EXPECT_TRUE(queue.Drain(absl::InfiniteDuration()));
  EXPECT_EQ(queue.in_flight(), 0u);
}

}  // namespace
}  // namespace cistern::serve
