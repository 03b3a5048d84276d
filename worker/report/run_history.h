// The lines of metrics.jsonl, as curves.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace cistern::report {

// The state of a run at one event. Fields that its line lacks are absent.
struct HistoryPoint {
  double samples = 0, seconds = 0;
  uint64_t iter = 0;
  std::optional<double> epoch, loss, lr, auc, logloss, samples_per_second;
  std::optional<uint64_t> unseen_keys, keys;
};

struct RunHistory {
  std::vector<HistoryPoint> train;  // events train; if there are none, pass
  std::vector<HistoryPoint> evals;
  std::optional<HistoryPoint> final;
  std::vector<std::string> warnings;     // each once
  std::map<std::string, double> phases;  // seconds of the training thread, by phase
  double seconds = 0;                    // of the last line
  uint64_t losses = 0, recoveries = 0;   // of servers or workers
  bool empty() const { return train.empty() && evals.empty() && !final; }
};

// Reads the lines of metrics.jsonl. Ignores lines that are not JSON objects with an event: a run
// that is still writing may have written half a line.
RunHistory ParseHistory(absl::string_view lines);

}  // namespace cistern::report
