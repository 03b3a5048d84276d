#include "worker/client/backoff.h"

#include <gtest/gtest.h>

namespace cistern {
namespace {

using std::chrono::milliseconds;

TEST(Backoff, DelaysGrowToTwoSecondsWithDownwardJitter) {
  Backoff backoff(absl::InfiniteDuration(), 1);
  const Backoff::Clock::time_point now;
  for (double full_ms : {50., 100., 200., 400., 800., 1600., 2000., 2000., 2000.}) {
    const std::optional<absl::Duration> delay = backoff.Next(now);
    ASSERT_TRUE(delay.has_value());
    EXPECT_GE(*delay, absl::Milliseconds(full_ms / 2));
    EXPECT_LE(*delay, absl::Milliseconds(full_ms));
  }
}

TEST(Backoff, EndsAtTheLimitSinceTheFirstFailure) {
  Backoff backoff(absl::Seconds(3), 1);
  const Backoff::Clock::time_point start;
  EXPECT_TRUE(backoff.Next(start).has_value());
  EXPECT_TRUE(backoff.Next(start + milliseconds(2800)).has_value());
  EXPECT_FALSE(backoff.Next(start + milliseconds(3000)).has_value());
  const absl::Status last = backoff.GaveUp(absl::UnavailableError("connection refused"));
  EXPECT_EQ(last, absl::UnavailableError("no answer for 3s (3 attempts): connection refused"));
}

TEST(Backoff, StartsOverAfterASuccess) {
  Backoff backoff(absl::Seconds(3), 1);
  const Backoff::Clock::time_point start;
  EXPECT_TRUE(backoff.Next(start).has_value());
  backoff.Reset();
  EXPECT_TRUE(backoff.Next(start + milliseconds(10000)).has_value());
}

TEST(WithRetry, RetriesOnlyRetryableErrors) {
  int calls = 0;
  EXPECT_TRUE(WithRetry(absl::Seconds(60), 0, [&] {
                return ++calls < 3 ? absl::UnavailableError("gone") : absl::OkStatus();
              }).ok());
  EXPECT_EQ(calls, 3);
  for (const absl::Status& error :
       {absl::FailedPreconditionError("x"), absl::ResourceExhaustedError("x"),
        absl::InvalidArgumentError("x"), absl::InternalError("x")}) {
    calls = 0;
    EXPECT_EQ(WithRetry(absl::Seconds(60), 0,
                        [&] {
                          ++calls;
                          return error;
                        }),
              error);
    EXPECT_EQ(calls, 1);
  }
}

TEST(WithRetry, TellsHowLongItWaited) {
  int calls = 0;
  absl::Duration waited = absl::InfiniteDuration();
  EXPECT_TRUE(WithRetry(
                  absl::Seconds(60), 0, [] { return absl::OkStatus(); }, &waited)
                  .ok());
  EXPECT_EQ(waited, absl::ZeroDuration());
  const Backoff::Clock::time_point start = Backoff::Clock::now();
  EXPECT_TRUE(WithRetry(
                  absl::Seconds(60), 0,
                  [&] { return ++calls < 3 ? absl::UnavailableError("gone") : absl::OkStatus(); },
                  &waited)
                  .ok());
  EXPECT_GE(waited, absl::Milliseconds(25 + 50));  // the least delays
  EXPECT_LE(waited, absl::FromChrono(Backoff::Clock::now() - start));
}

}  // namespace
}  // namespace cistern
