// When to try again, and when to give up, after a server could not be reached.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>

#include "absl/time/time.h"
#include "common/base/status.h"

namespace cistern {

// The codes that a repeat may heal; every verb of both planes that is retried is idempotent.
bool IsRetryable(const absl::Status& status);

// Doubling delays with jitter, from 50 ms up to 2 s, as long as `limit` since the first failure in
// a row is not reached. Time is the steady clock's.
//
// Threads: one at a time.
class Backoff {
 public:
  using Clock = std::chrono::steady_clock;

  // seed: tells callers apart, so that they do not come back in step.
  Backoff(absl::Duration limit, uint32_t seed) : limit_(limit), random_(seed + 1) {}

  // After a failure: how long to wait before the next try; nothing once the limit is reached.
  std::optional<absl::Duration> Next(Clock::time_point now);
  // After a success.
  void Reset() { failures_ = 0; }
  int failures() const { return failures_; }
  // `last` as the final word: how long and how often was tried.
  absl::Status GaveUp(const absl::Status& last) const;

 private:
  const absl::Duration limit_;
  std::minstd_rand random_;
  int failures_ = 0;
  Clock::time_point first_failure_, last_failure_;
};

// Repeats `call` while its error is retryable and the limit allows; sleeps in between.
absl::Status WithRetry(absl::Duration limit, uint32_t seed,
                       const std::function<absl::Status()>& call);

}  // namespace cistern
