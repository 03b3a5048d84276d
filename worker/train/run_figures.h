// How far a training run is: a part of its position, of its end, and of the summary of the job.
#pragma once

#include <cstdint>
#include <optional>

#include "worker/model/metric/metric_name.h"
#include "worker/report/run_event.h"

namespace cistern {

// The result of an evaluation. Absent values: no evaluation yet, or (AUC) one class only. auc and
// logloss control the run; the other metrics are only reported. The evaluation itself logs why a
// metric is undefined.
struct Score {
  std::optional<double> auc, logloss;
  model::MetricValues metrics;  // others in solver.eval_metrics
  bool operator==(const Score&) const = default;
};

// How far a run is, and how well it does.
struct RunFigures {
  uint64_t iterations = 0, samples = 0, epochs = 0, passes = 0;
  double loss = 0;  // of the last step that was not skipped
  Score score;      // of the last evaluation
  report::StopReason stopped_by =
      report::StopReason::kNone;  // why the run ended in or after this pass

  bool interrupted() const { return stopped_by == report::StopReason::kInterrupt; }
  bool operator==(const RunFigures&) const = default;
};

}  // namespace cistern
