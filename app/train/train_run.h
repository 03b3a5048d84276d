// One training run, from its options to its finished folder.
//
//   app::TrainRunOptions options;
//   options.model.config = "deepfm.json";
//   options.out = "runs/a";
//   absl::StatusOr<ModelConfig> config = app::ReadModelConfig(options.model);
//   absl::StatusOr<app::TrainRunResult> run = app::TrainRun(*config, options, {});
//
// Threads: one run at a time in a folder.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/export/publish.h"
#include "app/job_calls.h"
#include "app/model/model_source.h"
#include "app/run/launcher_rank.h"
#include "app/run/run_folder.h"
#include "common/http/metrics_endpoint.h"
#include "worker/train/jobs.h"

namespace cistern::app {

struct TrainRunOptions {
  ModelOptions model;
  std::string out;                // the folder of the run (run_folder.h), created if missing
  bool save_model = true;         // false: writes metrics but no model
  bool overwrite = false;         // replaces the run in the folder
  bool resume = false;            // continues after the last commit of the run in the folder
  bool more = false;              // with resume: the data is other than that of the finished run
  bool continues = false;         // rows that the servers hold are trained further
  bool keep_commits = true;       // embedded servers keep every commit in OUT/state
  double recovery_seconds = 300;  // how long to wait for lost servers and workers that keep commits
  WorkerRank worker;              // this process among the workers of the run
  std::vector<std::string> warnings;  // about the data, written at the start of the log
  // A data set that is scored once, at the end, with the final model, and chooses nothing; empty:
  // none.
  std::string final_test;
  std::string final_test_name;  // the file that the user named, for run.json
  // Names the run in logs and figures; empty: worker 0 picks one, and the others have none.
  std::string run_id;
  // Worker 0 also writes figures for these programs (app/track/tracker.h), into `log_dir`, or the
  // folder of the run if that is empty.
  std::vector<std::string> log;
  std::string log_dir;
  MetricsPlace metrics;  // where Prometheus reads the figures of this worker
  // A file that shows what this worker did when (common/trace/trace_file.h), in place of an older
  // one; empty: none. With several workers, "-RANK" is added before the ending of its name.
  std::string trace;
  // A serving folder that is kept at the newest commit of the run (publish.h), by worker 0. Needs
  // embedded servers that keep their commits. Empty: none.
  std::string publish;
};

// What a run calls while it works, from its own thread and, with `publish`, from the one that
// publishes. All may be empty.
struct TrainRunCalls {
  OnNote note;
  OnPublished published;
  // Each event of the run. false ends it as an interrupt does, with its state saved.
  std::function<bool(const Progress& progress)> progress;
  const std::atomic<bool>* interrupted = nullptr;  // set by a signal handler
  LiveState* live = nullptr;                       // updated at every step
};

struct TrainRunResult {
  TrainSummary summary;
  std::optional<EvalSummary> final_test;
  std::optional<Published> published;  // with `publish`
  std::string page;                    // report.html of the run; empty: none was written
  bool durable = false;                // the servers keep commits, so the run can be resumed
  bool ended = false;                  // `progress` ended the run
};

// Where a run keeps its files and state.
RunFolder RunFolderOf(const TrainRunOptions& options);

// Trains the model, and leaves a run folder: metrics, model, model file, recipe, record and report.
// The notes of the configuration are the caller's to show.
//
// If `interrupted` is set, the pass is committed and saved, and the result says so
// (summary.interrupted()). kInvalidArgument: options that exclude each other, a model or data that
// cannot be trained, a folder that holds another run; before anything is written.
// kFailedPrecondition of kind kOtherSchema: the run to resume has other tables; with the option
// metrics_port or metrics_socket: that place is taken. kUnavailable,
// kDeadlineExceeded: servers or workers are lost, and did not come back. Other errors: those of
// model, data and client; and those of Publish, after which the run itself is whole.
absl::StatusOr<TrainRunResult> TrainRun(model::ModelConfig config, const TrainRunOptions& options,
                                        const TrainRunCalls& calls);

}  // namespace cistern::app
