#include "serve/server/prediction_queue.h"

#include <gtest/gtest.h>

#include <atomic>

#include "absl/synchronization/notification.h"

namespace cistern {
namespace {

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
  for (int i = 0; i < 100; ++i) {
    absl::Notification done;
    while (!queue.Run([&] { done.Notify(); }).ok()) {
    }
    done.WaitForNotification();
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
}  // namespace cistern
