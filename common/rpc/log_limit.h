// Rate-limits log lines that a hostile client can trigger, so that they cannot fill the disk.
#pragma once

#include <cstdint>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace cistern {

// Allows one line of a kind per interval and counts the events that the line reports.
//
// Threads: one at a time.
class LogLimit {
 public:
  explicit LogLimit(absl::Duration interval) : interval_(interval) {}

  void Count(uint64_t times = 1) { count_ += times; }
  // The number of events since the last line if a line is due now; otherwise 0.
  uint64_t Due(absl::Time now) {
    if (count_ == 0 || now < next_) return 0;
    next_ = now + interval_;
    const uint64_t count = count_;
    count_ = 0;
    return count;
  }

 private:
  const absl::Duration interval_;
  absl::Time next_ = absl::InfinitePast();
  uint64_t count_ = 0;
};

}  // namespace cistern
