// Waits that a signal can end.
#pragma once

#include <algorithm>

#include "worker/group/group_options.h"

namespace cistern::group {

// The longest that a signal goes unnoticed.
inline constexpr std::chrono::milliseconds kSignalSlice{500};

// Waits in time slices and checks for a signal after each (kCancelled). `wait` gets the end of its
// slice as deadline, and is called again after kDeadlineExceeded.
template <typename Wait>
auto UntilInterrupted(const GroupOptions& group, Deadline deadline, const Wait& wait)
    -> decltype(wait(deadline)) {
  using Clock = std::chrono::steady_clock;
  for (;;) {
    auto result = wait(std::min<Deadline>(deadline, Clock::now() + kSignalSlice));
    if (result.ok() || Clock::now() >= deadline) return result;
    if (group.interrupted != nullptr && group.interrupted->load()) {
      return absl::CancelledError("interrupted");
    }
    if (!absl::IsDeadlineExceeded(result.status())) return result;
  }
}

}  // namespace cistern::group
