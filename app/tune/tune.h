// Searches learning rate, embedding size and depth of a model: trains variants of it.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "app/data/table_model.h"
#include "app/job_calls.h"
#include "app/train/train_run.h"
#include "app/tune/search.h"
#include "common/base/status.h"

namespace cistern::app {

struct TuneOptions {
  ModelOptions model;  // the model file or run folder, overrides, threads, device
  std::string input;   // what is tuned, as the user named it, for tune.jsonl
  std::string out;     // the folder of the search: tune.jsonl and a run for each trial
  uint64_t trials = 16, seed = 1;
  absl::Duration time = absl::InfiniteDuration();  // ends the search after this time
  TuneSpace space;                                 // empty lists: DefaultSpace
  bool resume = false, overwrite = false;          // of the search in the folder
  std::vector<std::string> warnings;               // about the data, for the first trial
};

// What a search calls while it works, from its own thread. All may be empty.
struct TuneCalls {
  OnNote note;  // also which trial begins
  // Trains a trial; goes_on(event) is false once the trial is to end. Empty: TrainRun, silently.
  std::function<absl::StatusOr<TrainRunResult>(const model::ModelConfig& config,
                                               const TrainRunOptions& options,
                                               const std::function<bool(const Progress&)>& goes_on)>
      train;
  const std::atomic<bool>* interrupted = nullptr;  // set by a signal handler
};

struct TuneResult {
  std::vector<Trial> trials;  // that ended, in this search or before it was resumed
  bool out_of_time = false, interrupted = false;

  // OK if a trial has an AUC. kCancelled: interrupted; kFailedPrecondition: no trial has one.
  absl::Status outcome() const;
};

// Refuses options of which a search knows at once that they cannot be. kInvalidArgument, with a
// fix: also if the folder holds a search that is neither resumed nor replaced.
absl::Status CheckTune(const TuneOptions& options);

// If options->model names a table: makes its model and data in options->out, unless a search that
// is resumed has made them. kInvalidArgument, with the option and a fix: an option for a table
// without one. Errors of MakeTableModel.
absl::Status ApplyTable(const TableOptions& table, TuneOptions* options, const TableCalls& calls);

// Trains up to `trials` variants; trial 1 is the model as it is. Trials that fall below the median
// of the others are stopped early. Failed trials are results. kInvalidArgument, with a fix: there
// is no evaluation data; the model lacks what `space` varies; the search to resume is another one.
absl::StatusOr<TuneResult> Tune(const TuneOptions& options, const TuneCalls& calls);

}  // namespace cistern::app
