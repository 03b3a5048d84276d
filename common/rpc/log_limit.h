// Keeps log lines that a stranger can cause from filling the disk.
#pragma once

#include <cstdint>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace cistern {

// Lets one line of a kind pass in each interval, and counts what the line stands for.
//
// Threads: one at a time.
class LogLimit {
 public:
  explicit LogLimit(absl::Duration interval) : interval_(interval) {}

  void Count(uint64_t times = 1) { count_ += times; }
  // How often Count was called since the last line, if that is worth a line now; else 0.
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
