// The figures of a training, as a page for Prometheus (docs/monitoring.md lists them).
//
// They follow from what the training says anyway: its state at every step (live_state.h), and its
// events (Progress). A training that is resumed or returns to a commit counts on: counters
// describe this process, gauges describe the run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/metrics/metric_text.h"
#include "worker/pass/idle_times.h"
#include "worker/train/jobs.h"
#include "worker/train/live_state.h"

namespace cistern {

// Threads: any thread.
class TrainFigures {
 public:
  // live: outlives this. rank, workers: of this process among those of the run.
  TrainFigures(const LiveState* live, uint32_t rank, uint32_t workers)
      : live_(*live), rank_(rank), workers_(workers) {}

  // The id of the run, before anybody reads; empty: not known.
  void SetRun(const std::string& run) { run_ = run; }
  // An event of the training.
  void Observe(const Progress& progress);

  std::string Text() const;

 private:
  void ObservePass(const Progress& pass) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddSteps(MetricText* text) const;
  void AddPasses(MetricText* text) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void AddScores(MetricText* text) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void AddTroubles(MetricText* text) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const LiveState& live_;
  const uint32_t rank_, workers_;
  std::string run_;

  mutable absl::Mutex mutex_;
  std::optional<Progress> pass_ ABSL_GUARDED_BY(mutex_);   // the last event with a pass
  std::optional<Progress> score_ ABSL_GUARDED_BY(mutex_);  // the last event with a log loss
  uint64_t passes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t evicted_rows_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t expired_rows_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time pass_time_ ABSL_GUARDED_BY(mutex_) = absl::UnixEpoch();
  IdleTimes idle_ ABSL_GUARDED_BY(mutex_);  // seconds
  double busy_seconds_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<double> learning_rate_ ABSL_GUARDED_BY(mutex_), epoch_ ABSL_GUARDED_BY(mutex_);
  uint64_t losses_ ABSL_GUARDED_BY(mutex_) = 0, recoveries_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t warnings_ ABSL_GUARDED_BY(mutex_) = 0, skipped_steps_ ABSL_GUARDED_BY(mutex_) = 0;
  data::BadData::Counts skipped_data_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cistern
