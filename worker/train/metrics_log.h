// The log of a run's events: writes one JSON object per line to metrics.jsonl, and passes each
// event to a callback. It adds what follows from the events themselves: rates, the time of each
// phase, and warnings. With the final event it writes evaluation.json.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/base/steady_time.h"
#include "common/base/types.h"
#include "common/io/file_system.h"
#include "worker/train/evaluation_keeper.h"
#include "worker/train/jobs.h"
#include "worker/train/live_state.h"
#include "worker/train/phase_clock.h"
#include "worker/train/run_warnings.h"

namespace cistern {

// Threads: one at a time.
class MetricsLog {
 public:
  // Creates `out_dir`; if it is empty, events only go to `watch`. Call StartAt before Write.
  // files: must outlive this object.
  static absl::StatusOr<std::unique_ptr<MetricsLog>> Create(
      FileSystem& files, const std::string& out_dir, std::function<void(const Progress&)> watch);
  ~MetricsLog() { Enter(std::nullopt); }

  // The point of a run from which lines are appended.
  struct Place {
    uint64_t iter = 0, samples = 0;
    PassId pass = 0;  // committed; 0: the start of the run, no line is kept
  };
  // Truncates metrics.jsonl after the line of `place`'s commit, and appends from there. Lines of
  // earlier processes are kept, so that the file reads as one run. The new file atomically replaces
  // the old one. Returns whether it holds the commit's line.
  absl::StatusOr<bool> StartAt(const Place& place);

  // Adds the times and the rate (samples since the last event of its kind) to `progress`, writes
  // its line and passes it to the callback. A write error does not fail the run: it is logged once,
  // and later lines are dropped.
  void Write(Progress progress);

  // Writes the line of a pass that is being committed: the line, and all lines after it, reach the
  // file when Release says that the pass is committed. So a "pass" line in the file always is a
  // commit, and the lines are in the order of the run. The callback receives the pass at Release,
  // and other events at once.
  //
  // complete: adds to the pass what is known since its commit; null: nothing.
  void Hold(Progress pass);
  void Release(const std::function<void(Progress&)>& complete = nullptr);

  // Ends the current phase and begins `phase`; returns the one that ended. Lines "pass", "eval" and
  // "final" tell how long each took since the last of them.
  std::optional<Phase> Enter(std::optional<Phase> phase);
  // live: shows the phase; figures: receive each event; trace: shows each phase; all may be null,
  // and must outlive this object.
  void ShowOn(LiveState* live, TrainFigures* figures, TraceFile* trace) {
    live_ = live;
    figures_ = figures;
    trace_ = trace;
  }
  RunWarnings& warnings() { return warnings_; }

  double seconds() const;  // the time of the run, earlier processes included

 private:
  explicit MetricsLog(FileSystem& files) : files_(files) {}
  absl::StatusOr<std::string> OldLines() const;
  absl::Status Rewrite(const std::string& lines);
  // Adds the times and the rate.
  void Stamp(Progress& progress);
  void Append(const std::string& lines);
  // Passes an event to all that watch.
  void Report(const Progress& progress) const;
  // The line of an event. Lines of passes, evaluations and the end have the time of each phase.
  std::string LineOf(const Progress& progress);
  // Keeps the scores of an evaluation, and writes the warnings that follow from an event.
  void Conclude(const Progress& progress);
  void WriteScores(const report::ScoreDetail& scores) const;
  struct Mark {
    double seconds = 0;
    uint64_t samples = 0;
  };
  FileSystem& files_;
  std::string path_;                    // empty: no file
  std::unique_ptr<WritableFile> file_;  // null before StartAt and after an error
  std::function<void(const Progress&)> watch_;
  std::chrono::steady_clock::time_point start_;
  double seconds_before_ = 0;  // the time of the run at start_
  bool started_ = false;
  Mark first_;  // at StartAt
  std::map<report::RunEvent, Mark> marks_;
  std::optional<Progress> held_;  // the pass of Hold
  PhaseSeconds held_phases_{};    // of its line
  std::string held_lines_;        // after its line
  PhaseClock phases_;
  LiveState* live_ = nullptr;
  TrainFigures* figures_ = nullptr;
  TraceFile* trace_ = nullptr;
  SteadyTime phase_begin_;  // with a trace: when the phase began
  RunWarnings warnings_;
  EvaluationKeeper evaluations_;
};

}  // namespace cistern
