// metrics.jsonl: one JSON object a line, one line an event, and the same events to whoever watches.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/base/types.h"
#include "common/io/file_system.h"
#include "worker/train/jobs.h"

namespace cistern {

// Threads: one at a time.
class MetricsLog {
 public:
  // Creates `out_dir`; with an empty one only `watch` sees events. StartAt comes before any line.
  // files: the disk, which outlives this.
  static absl::StatusOr<std::unique_ptr<MetricsLog>> Create(
      FileSystem& files, const std::string& out_dir, std::function<void(const Progress&)> watch);

  // Where the lines of a run go on.
  struct Place {
    uint64_t iter = 0, samples = 0;
    PassId pass = 0;  // committed; 0: at the beginning, and no line is kept
  };
  // Keeps the lines of metrics.jsonl up to that of the commit of `place`, also those that another
  // process wrote, removes what came after, and goes on from there: the file reads as one run. The
  // new file takes the name of the old one in one step. True if it holds the commit's line.
  absl::StatusOr<bool> StartAt(const Place& place);

  // Adds the times and the rate (samples since the last event of its kind) to `progress`, writes
  // its line and hands it on. A line that cannot be written is no failure of the run: the log says
  // so once, and the lines after it are missing too.
  void Write(Progress progress);

  double seconds() const;  // of the run, earlier processes included

 private:
  explicit MetricsLog(FileSystem& files) : files_(files) {}
  absl::StatusOr<std::string> OldLines() const;
  absl::Status Rewrite(const std::string& lines);
  struct Mark {
    double seconds = 0;
    uint64_t samples = 0;
  };
  FileSystem& files_;
  std::string path_;                    // empty: no file
  std::unique_ptr<WritableFile> file_;  // null: not begun, or dead
  std::function<void(const Progress&)> watch_;
  std::chrono::steady_clock::time_point start_;
  double seconds_before_ = 0;  // of the run, at start_
  bool started_ = false;
  Mark first_;                         // where StartAt began
  std::map<std::string, Mark> marks_;  // by event
};

}  // namespace cistern
