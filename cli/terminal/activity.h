// Progress of a long command: how much is done, and how long it has taken so far.
//
// Terminal: one line that updates every second and is erased at the end. Log: a line of key=value
// pairs every ten seconds. A command that ends within the first second prints nothing.
#pragma once

#include <memory>
#include <string>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cli/terminal/report.h"
#include "common/base/thread_pool.h"

namespace cistern::cli {

// "verifying  3 of 12 files  2m10s", or, in a log, "event=verifying done=3 total=12 unit=files
// seconds=130.0".
std::string ActivityLine(const std::string& what, const std::string& unit, uint64_t done,
                         uint64_t total, double seconds, bool terminal);

// Threads: all but the ends of its life may be called from any thread. No one else may use the
// console during this object's lifetime.
class Activity {
 public:
  // console: outlives this; null: prints nothing.
  explicit Activity(Console* console);
  ~Activity();
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;

  // Shows this activity from now on. unit: what `total` counts ("files").
  void Show(const std::string& what, const std::string& unit, uint64_t done, uint64_t total);
  // Writes a permanent line.
  void Say(const std::string& line);

 private:
  void Run();

  Console* const console_;
  const absl::Time start_;
  absl::Mutex mutex_;
  std::string what_ ABSL_GUARDED_BY(mutex_), unit_ ABSL_GUARDED_BY(mutex_);  // empty: none yet
  uint64_t done_ ABSL_GUARDED_BY(mutex_) = 0, total_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<ThreadPool> thread_;  // one thread; its destructor waits for Run
};

}  // namespace cistern::cli
