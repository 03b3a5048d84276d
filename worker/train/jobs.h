// The three jobs of a worker: train, evaluate, predict. Programs call these and nothing deeper.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "cuda/core/stream.h"
#include "worker/client/parameter_client.h"
#include "worker/model/config/model_config.h"
#include "worker/model/metric/metric_name.h"

namespace cistern {

// One moment of a run: a line of metrics.jsonl, and what a terminal shows.
struct Progress {
  // "train", "pass", "eval", "final"; "resume": goes on from a commit; "lost": a pass was lost with
  // a server, and is waited for (not in metrics.jsonl); "recover": it goes on after that.
  std::string event;
  uint64_t iter = 0;
  uint64_t samples = 0;         // since the start of the run
  std::optional<double> epoch;  // epochs done, with fraction where known
  std::optional<double> loss, lr, auc, logloss;
  MetricValues metrics;                 // eval, final: what else solver.eval_metrics asks for
  std::optional<uint64_t> unseen_keys;  // evaluation: distinct keys that read the default row
  std::optional<uint64_t> rows;         // pass: distinct keys
  uint64_t skipped_steps = 0;           // since the start of the run (cistern.not_finite)
  std::optional<uint64_t> pass;         // committed pass
  double seconds = 0;                   // since the start of the run
  double samples_per_second = 0;        // since the last event of this kind
  std::optional<double> seconds_left;
  std::optional<uint64_t> total_iterations;
  std::string message;  // resume, lost, recover: what happened, for people
};

struct JobOptions {
  std::string out_dir;  // metrics.jsonl and model/ go here; created; empty: nothing is written
  bool save_model = true;
  // Set by a signal handler: training stops after the current pass is committed and saved.
  const std::atomic<bool>* interrupted = nullptr;
  std::function<void(const Progress&)> progress;  // called from the training thread
  DeviceKind device = DeviceKind::kCpu;           // that the model computes on
  bool check_ops = false;                         // a GPU's error names its op; slow
  int threads = 0;                                // of the CPU device; 0: all cores
  int gpu = 0;                                    // which of the machine's
  // Train: this is worker `rank` of so many, which all train the same model from the same files, in
  // the same way (these options included), and each take a part of every batch.
  uint32_t rank = 0, world_size = 1;
  std::string peers;  // "host:port" where worker 0 listens for the others; world_size > 1
  // The disk of models; not owned, outlives the job. Null: the machine's own.
  FileSystem* files = nullptr;
  // Go on from the position of the newest commit, if there is one; durable servers only.
  bool resume = false;
  // Durable servers: how long lost ones are waited for, before the job fails. Several workers: how
  // long all of them are, at the start and after one was lost.
  double recovery_seconds = 300;
};

struct TrainSummary {
  uint64_t iterations = 0, samples = 0, passes = 0, epochs = 0, rows = 0;
  double seconds = 0, samples_per_second = 0;
  double loss = 0;                     // last
  std::optional<double> auc, logloss;  // of the state that was kept
  MetricValues metrics;                // as in Progress
  std::string model_dir;               // empty: not saved
  bool interrupted = false;
  std::string stopped_by;                // "max_iter", "epochs", "auc", "patience", "interrupt"
  std::optional<uint64_t> resumed_from;  // iterations that were done when the job began
  uint64_t skipped_steps = 0;            // whose loss or gradient was not a finite number
  uint64_t recoveries = 0;               // times that passes were lost with a server
};

struct EvalSummary {
  uint64_t samples = 0, positives = 0, unseen_keys = 0;
  std::optional<double> auc;  // absent: one class only, and then `auc_note` says so
  std::string auc_note;
  double logloss = 0;
  MetricValues metrics;  // what else solver.eval_metrics asks for
  double seconds = 0;
};

// The tables that a model asks of the servers: for checks before anything starts.
absl::StatusOr<v1::Schema> SchemaOf(const ModelConfig& config);

// Trains `config` against the servers of `client` (connected; tables are created here).
//
// On durable servers a pass that is lost with a server is trained again, from the last commit on,
// once the server is back; no sample is trained twice into the state. options.resume continues a
// run whose worker ended: kInvalidArgument if `config` would train something else. Errors: those of
// model, data and client; whatever was committed before stays on the servers.
//
// Of several workers each pulls, holds and pushes the rows of its share of the keys; worker 0
// claims and commits, writes metrics and models, and what it decides all do. The passes commit
// together or not at all. On durable servers a worker that is lost is waited for like a server:
// started again with `resume`, it goes on with the others from the last commit.
absl::StatusOr<TrainSummary> Train(const ModelConfig& config, ParameterClient& client,
                                   const JobOptions& options);

// Evaluates the servers' committed state on `files` (a file list or one Norm file each; empty: the
// model's eval_source).
absl::StatusOr<EvalSummary> Evaluate(const ModelConfig& config, ParameterClient& client,
                                     const std::vector<std::string>& files,
                                     const JobOptions& options);

// Writes "label<TAB>prediction" (9 significant digits) for every sample of `files`, in order, to
// `output`, through a temporary file: a failed job leaves no output. With several labels, one
// "label<TAB>prediction" pair a label, separated by tabs.
absl::StatusOr<EvalSummary> Predict(const ModelConfig& config, ParameterClient& client,
                                    const std::vector<std::string>& files,
                                    const std::string& output, const JobOptions& options);

// Which tables of a model folder are read, and how (common/value/table_choice.h).
struct LoadChoice {
  bool upgrade = false;
  std::vector<std::string> tables;  // names; empty: all
};

// Reads a model folder (common/saved_model/model_folder.h) into the servers, in place of what they
// hold, and sets their committed pass. Tables are those of `config`; kInvalidArgument if the
// folder's cannot be read into them. Claims an epoch. left_out: tables that were not read; may be
// null. kAborted: a server was restarted meanwhile; try again.
absl::Status LoadModel(FileSystem& files, const ModelConfig& config, ParameterClient& client,
                       const std::string& folder, const LoadChoice& load = {},
                       std::vector<v1::TableLeftOut>* left_out = nullptr);

// The same by the writer that has claimed an epoch and has the tables. commit: with the position
// and the clock that belong to these rows.
absl::Status RestoreModel(FileSystem& files, ParameterClient& client, const std::string& folder,
                          const ParameterClient::CommitOptions& commit);

// Writes everything the servers hold as a model folder; replaces an older one at `folder` in one
// step.
absl::Status SaveModel(FileSystem& files, ParameterClient& client, const std::string& folder);

// Makes `to` a copy of the model folder `from`, as SaveModel would.
absl::Status CopyModel(FileSystem& files, const std::string& from, const std::string& to);

}  // namespace cistern
