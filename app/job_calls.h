// What a job says while it works, and how its caller ends it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/status.h"

namespace cistern::app {

// Called from the thread of the job, with one line for a person, which changes nothing: "note: the
// servers hold a model".
using OnNote = std::function<void(const std::string& line)>;

// How much of a job is done.
struct Amount {
  std::string what, unit;        // "verifying", "files and tables"
  uint64_t done = 0, total = 0;  // of `unit`; total grows while the job learns what there is to do
};

// What a job is given beside its options. All members may be empty.
struct JobCalls {
  OnNote note;
  // Called from any thread of the job, one call at a time.
  std::function<void(const Amount& amount)> amount;
  // Set from any thread: the job ends early with kCancelled, and removes what is half written.
  const std::atomic<bool>* stop = nullptr;

  // kCancelled once the caller has asked the job to end.
  absl::Status CheckStop() const {
    return stop != nullptr && *stop ? absl::CancelledError("interrupted") : absl::OkStatus();
  }
  void Note(const std::string& line) const {
    if (note) note(line);
  }
};

// Sleeps for `most`, or until soon after *stop is set. stop: may be null.
inline void SleepUnless(const std::atomic<bool>* stop, absl::Duration most) {
  constexpr absl::Duration kPiece = absl::Milliseconds(50);
  const absl::Time end = absl::Now() + most;
  for (absl::Duration left = most; left > absl::ZeroDuration(); left = end - absl::Now()) {
    if (stop != nullptr && *stop) return;
    absl::SleepFor(std::min(left, kPiece));
  }
}

// Counts the items of a job for JobCalls::amount.
//
// Threads: any.
class AmountCounter {
 public:
  // calls: outlives this.
  AmountCounter(const JobCalls& calls, std::string what, std::string unit)
      : calls_(calls), amount_{std::move(what), std::move(unit)} {}

  void Expect(uint64_t more) { Add(0, more); }
  void Done() { Add(1, 0); }

 private:
  void Add(uint64_t done, uint64_t total) {
    absl::MutexLock lock(&mutex_);
    amount_.done += done;
    amount_.total += total;
    if (calls_.amount) calls_.amount(amount_);
  }

  const JobCalls& calls_;
  absl::Mutex mutex_;
  Amount amount_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cistern::app
