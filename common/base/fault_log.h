// Logs a fault that may pass by itself, such as a folder that is away for a moment.
//
//   FaultLog faults("reading /data/serving");
//   while (...) faults.Report(Read());
//
// A line is written when a fault begins or becomes another one, each minute while it lasts, and
// when it has passed.
#pragma once

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace cistern {

// Threads: any thread.
class FaultLog {
 public:
  // what: the work that fails, as the subject of a sentence: "reading /data/serving".
  explicit FaultLog(std::string what) : what_(std::move(what)) {}

  // The outcome of an attempt. consequence: what happens meanwhile, for the log.
  void Report(const absl::Status& outcome, const std::string& consequence = "",
              absl::Time now = absl::Now());

  // Attempts that failed.
  uint64_t faults() const;
  // Whether the last attempt failed.
  bool failing() const;

 private:
  const std::string what_;
  mutable absl::Mutex mutex_;
  uint64_t faults_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string message_ ABSL_GUARDED_BY(mutex_);  // of the last attempt; empty: it succeeded
  absl::Time since_ ABSL_GUARDED_BY(mutex_), logged_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cistern
