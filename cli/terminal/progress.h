// Prints the progress of a run, for a person at a terminal or for a log.
//
// Terminal: a bar that updates in place five times a second, and a permanent line for each
// evaluation and each warning.
// Log: a line of key=value pairs for each event.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cli/terminal/progress_bar.h"
#include "cli/terminal/report.h"
#include "common/base/amount_text.h"
#include "common/base/thread_pool.h"
#include "worker/train/jobs.h"
#include "worker/train/live_state.h"

namespace cistern::cli {

// "event=train iter=1000 samples=512000 loss=0.34567 lr=0.001 samples_per_second=45678". Fields
// without a value are left out.
std::string PlainLine(const Progress& progress);

// "ne           0.912000\n": one line per metric, the name padded to at least `width` columns. An
// undefined metric prints "none" and the reason.
std::string MetricLines(const model::MetricValues& metrics, int width);

// "3% (commit 2%, data 1%)": the share of time that the device waited between passes, and for what.
std::string IdleText(const IdleTimes& idle);

// How much a run will train, if known.
struct RunSize {
  std::optional<uint64_t> iterations;  // solver.max_iter
  std::optional<uint64_t> samples;     // of all epochs
};
RunSize SizeOf(const model::ModelConfig& config);

// Threads: Show and Finish: one at a time. On a terminal a thread of this object redraws the bar;
// while it lives, nobody else may use the console.
class ProgressPrinter {
 public:
  // console, live: outlive this.
  ProgressPrinter(Console* console, const LiveState* live, const RunSize& size);
  ~ProgressPrinter();
  ProgressPrinter(const ProgressPrinter&) = delete;
  ProgressPrinter& operator=(const ProgressPrinter&) = delete;

  void Show(const Progress& progress);
  // Erases the bar: what a finished run says is complete without it. Show may not follow.
  void Finish();

 private:
  struct Mark {
    double seconds = 0;  // since start_
    uint64_t samples = 0;
    double share = 0;
  };
  void Run();
  BarState StateNow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Console* const console_;
  const LiveState* const live_;
  const RunSize size_;
  const absl::Time start_;
  absl::Mutex mutex_;
  BarStyle style_ ABSL_GUARDED_BY(mutex_);
  std::optional<double> auc_ ABSL_GUARDED_BY(mutex_), rate_ ABSL_GUARDED_BY(mutex_);
  std::optional<Mark> first_ ABSL_GUARDED_BY(mutex_);  // at the first step
  Mark last_ ABSL_GUARDED_BY(mutex_);                  // of the rate
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<ThreadPool> thread_;  // one thread; its destructor waits for Run
};

}  // namespace cistern::cli
