// metrics.jsonl: one JSON object a line, one line an event, and the same events to whoever watches.
#pragma once

#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <string>

#include "common/status.h"
#include "worker/train/jobs.h"

namespace cistern {

// Threads: one at a time.
class MetricsLog {
 public:
  // Creates `out_dir` and empties out_dir/metrics.jsonl; with an empty out_dir only `watch` sees
  // events.
  static absl::StatusOr<std::unique_ptr<MetricsLog>> Create(
      const std::string& out_dir, std::function<void(const Progress&)> watch);
  ~MetricsLog();

  // Adds the times and the rate (samples since the last event of its kind) to `progress`, writes
  // its line and hands it on.
  void Write(Progress progress);

  double seconds() const;  // since Create

 private:
  MetricsLog() = default;
  struct Mark {
    double seconds = 0;
    uint64_t samples = 0;
  };
  std::FILE* file_ = nullptr;
  std::function<void(const Progress&)> watch_;
  std::chrono::steady_clock::time_point start_;
  std::map<std::string, Mark> marks_;  // by event
};

}  // namespace cistern
