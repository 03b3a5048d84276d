#include "common/rpc/control_threads.h"

#include <gtest/gtest.h>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/rpc/health_probe.h"
#include "test/common/rpc/loopback.h"

namespace cistern {
namespace {

// Long enough for any machine; reached only by a test that fails.
constexpr absl::Duration kLimit = absl::Seconds(60);

TEST(ControlThreads, RefuseCallsIfTooManyWaitOrWhenStopped) {
  absl::Notification open;
  ControlThreads threads;
  constexpr int kRunning = 2, kWaiting = 256;
  absl::BlockingCounter running(kRunning);
  for (int i = 0; i < kRunning; ++i) {
    threads.Run(CallLength::kLook, [&](const absl::Status& refusal) {
      EXPECT_EQ(refusal, absl::OkStatus());
      running.DecrementCount();
      open.WaitForNotification();
    });
  }
  running.Wait();
  std::atomic<int> refused{0};
  const auto count = [&](const absl::Status& refusal) {
    EXPECT_EQ(refusal.code(), absl::StatusCode::kUnavailable);
    ++refused;
  };
  for (int i = 0; i < kWaiting; ++i) threads.Run(CallLength::kLook, count);
  EXPECT_EQ(refused, 0);
  threads.Run(CallLength::kLook, count);
  EXPECT_EQ(refused, 1);
  threads.Stop();  // while two still run
  EXPECT_EQ(refused, 1 + kWaiting);
  threads.Run(CallLength::kShort, count);
  EXPECT_EQ(refused, 2 + kWaiting);
  open.Notify();
}

TEST(HealthProbe, ReportsAnUnresponsivePlaneAndItsRecovery) {
  absl::Notification open, failed, healed;
  NamingControl plane;
  plane.hello_gate = &open;
  ControlThreads threads;
  HealthProbe probe(&plane, &threads,
                    [&](bool serving) { serving ? healed.Notify() : failed.Notify(); },
                    {absl::Milliseconds(1), absl::Milliseconds(1)});
  EXPECT_TRUE(failed.WaitForNotificationWithTimeout(kLimit)) << "the failure is never reported";
  plane.hello_gate = nullptr;
  open.Notify();
  EXPECT_TRUE(healed.WaitForNotificationWithTimeout(kLimit)) << "the recovery is never reported";
}

}  // namespace
}  // namespace cistern
