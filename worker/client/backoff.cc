#include "worker/client/backoff.h"

#include <algorithm>

#include "absl/time/clock.h"

namespace cistern {

bool IsRetryable(const absl::Status& status) {
  return status.code() == absl::StatusCode::kUnavailable ||
         status.code() == absl::StatusCode::kDeadlineExceeded;
}

std::optional<absl::Duration> Backoff::Next(Clock::time_point now) {
  if (failures_++ == 0) first_failure_ = now;
  last_failure_ = now;
  const double full_ms =
      std::min(2000.0, 50.0 * static_cast<double>(1 << std::min(failures_ - 1, 6)));
  const double jitter = std::uniform_real_distribution<double>(0.5, 1.0)(random_);
  const absl::Duration delay = absl::Milliseconds(full_ms * jitter);
  const absl::Duration spent = absl::FromChrono(now - first_failure_);
  if (spent + delay > limit_) return std::nullopt;
  return delay;
}

absl::Status Backoff::GaveUp(const absl::Status& last) const {
  const auto spent = std::chrono::duration<double>(last_failure_ - first_failure_).count();
  return WithMessage(
      last, absl::StrCat(
                "no answer for ",
                absl::FormatDuration(absl::Seconds(static_cast<int64_t>(spent * 10 + 0.5)) / 10),
                " (", failures_, failures_ == 1 ? " attempt): " : " attempts): ", last.message()));
}

absl::Duration Backoff::Waited(Clock::time_point now) const {
  return failures_ == 0 ? absl::ZeroDuration() : absl::FromChrono(now - first_failure_);
}

absl::Status WithRetry(absl::Duration limit, uint32_t seed,
                       const std::function<absl::Status()>& call, absl::Duration* waited) {
  Backoff backoff(limit, seed);
  while (true) {
    const absl::Status status = call();
    if (!IsRetryable(status)) {
      if (waited != nullptr) *waited = backoff.Waited(Backoff::Clock::now());
      return status;
    }
    const std::optional<absl::Duration> delay = backoff.Next(Backoff::Clock::now());
    if (!delay) return backoff.GaveUp(status);
    absl::SleepFor(*delay);
  }
}

}  // namespace cistern
