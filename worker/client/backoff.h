// When to retry a call to an unreachable server, and when to give up.
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

// Whether a retry can succeed, by the status code. Every retried verb of both planes is idempotent.
bool IsRetryable(const absl::Status& status);

// Exponential backoff with jitter: delays double from 50 ms to 2 s until `limit` has passed since
// the first of a run of consecutive failures. Time is the steady clock's.
//
// Threads: one at a time.
class Backoff {
 public:
  using Clock = std::chrono::steady_clock;

  // seed: different for each caller, so that callers do not retry in lockstep.
  Backoff(absl::Duration limit, uint32_t seed) : limit_(limit), random_(seed + 1) {}

  // Call after a failure: how long to wait before the next attempt; nullopt at the limit.
  std::optional<absl::Duration> Next(Clock::time_point now);
  // Call after a success.
  void Reset() { failures_ = 0; }
  int failures() const { return failures_; }
  // The time since the first of the failures; 0 without one.
  absl::Duration Waited(Clock::time_point now) const;
  // The error to return at the limit: `last`, with the time spent and the number of attempts.
  absl::Status GaveUp(const absl::Status& last) const;

 private:
  const absl::Duration limit_;
  std::minstd_rand random_;
  int failures_ = 0;
  Clock::time_point first_failure_, last_failure_;
};

// Repeats `call` while its error is retryable and the limit allows, with a sleep between attempts.
// waited, if not null: gets the time from the first failure to the answer.
absl::Status WithRetry(absl::Duration limit, uint32_t seed,
                       const std::function<absl::Status()>& call, absl::Duration* waited = nullptr);

}  // namespace cistern
