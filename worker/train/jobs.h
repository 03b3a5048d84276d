// The jobs of a worker: train, evaluate, predict, and load or save a model. Programs call only
// these.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "common/tls/tls_files.h"
#include "cuda/core/stream.h"
#include "worker/client/parameter_client.h"
#include "worker/data/format/bad_data.h"
#include "worker/model/config/model_config.h"
#include "worker/model/metric/metric_name.h"
#include "worker/pass/idle_times.h"
#include "worker/report/run_event.h"
#include "worker/train/run_figures.h"

namespace cistern::report {
struct ScoreDetail;  // worker/report/score_detail.h
}  // namespace cistern::report

namespace cistern {

class NewFile;       // common/io/new_file.h
class TraceFile;     // common/trace/trace_file.h
class TrainFigures;  // worker/train/train_figures.h
struct LiveState;    // worker/train/live_state.h

// One event of a run: a line of metrics.jsonl, also shown on the terminal. eval and final have a
// score; pass, on a stream, that of the pass before it was trained.
struct Progress : Score {
  report::RunEvent event = report::RunEvent::kTrain;
  uint64_t iter = 0;
  uint64_t samples = 0;         // since the start of the run
  std::optional<double> epoch;  // completed epochs, with a fraction if known
  std::optional<double> loss, lr;
  std::optional<uint64_t> unseen_keys;  // evaluation: distinct keys that read the default row
  std::optional<uint64_t> keys;         // evaluation: distinct keys
  std::shared_ptr<const report::ScoreDetail> scores;  // eval: details; not in metrics.jsonl
  std::optional<uint64_t> rows;                       // pass: distinct keys
  // pass: those of them that its commit, which is not durable, left out, because the next pass
  // holds them; not set: none.
  std::optional<uint64_t> kept_rows;
  // pass, on a stream: messages (files of a folder) that are there and not read, and the age of the
  // last sample that was read.
  std::optional<uint64_t> behind_messages;
  std::optional<double> behind_seconds;
  // pass, on a stream: sum of predictions over sum of labels, of the pass before it was trained.
  std::optional<double> calibration_ratio;
  // pass, on a stream: the samples of it that were scored, and the standard error of their auc,
  // which labels that are weighted or several do not have.
  std::optional<uint64_t> scored_samples;
  std::optional<double> auc_standard_error;
  // pass, with bounded tables: rows that its commit removed, above max_rows, or past
  // expire_passes or expire_days.
  std::optional<uint64_t> evicted_rows, expired_rows;
  // pass, final: fractions of the time since the last pass, or since the first step, in which the
  // device waited.
  std::optional<IdleTimes> idle;
  std::optional<IdleTimes> idle_seconds;  // pass: the same in seconds; not in metrics.jsonl
  std::optional<BusyTime> busy;           // pass, final: over the time of `idle`
  uint64_t skipped_steps = 0;             // since the start of the run (cistern.not_finite)
  data::BadData::Counts skipped_data;     // files left out by this process (cistern.on_bad_data)
  std::vector<uint64_t> decoded_bytes;    // final: of samples, by worker, in this job
  std::optional<uint64_t> pass;           // committed pass
  double seconds = 0;                     // since the start of the run
  double samples_per_second = 0;          // since the last event of this kind
  std::optional<double> seconds_left;
  std::optional<uint64_t> total_iterations;
  std::string message;  // resume, lost, recover, warning: human-readable description
};

// The names of the columns of the data, by position; empty where they are not known.
struct ColumnNames {
  std::vector<std::string> slots, dense;
};

// What a caller that drives a training step by step wants next.
struct StepOrder {
  enum Kind {
    kStep,
    kEvaluate,  // on the model's eval_source; the result is a kEval event; then asks again
    kStop,      // ends the run as an interrupt does, with its state committed
  };
  Kind kind = kStep;
  std::optional<double> learning_rate;  // of this step, for all optimizers; not set: the schedule's
};

struct JobOptions {
  std::string out_dir;  // for metrics.jsonl and model/; created if missing; empty: writes nothing
  bool save_model = true;
  // Set by a signal handler: training commits and saves the current pass, then stops.
  const std::atomic<bool>* interrupted = nullptr;
  std::function<void(const Progress&)> progress;  // called from the training thread
  // Train, a single worker: called from the training thread before each step, with the steps so far
  // and the loss of the last one; it may take its time. Null: trains on. No evaluation at the end.
  std::function<StepOrder(uint64_t iterations, double loss)> before_step;
  // Set by `progress`: training ends as if it had been interrupted.
  const std::atomic<bool>* ended = nullptr;
  LiveState* live = nullptr;             // updated at every step; not owned
  TrainFigures* figures = nullptr;       // receives each event, on every worker; not owned
  TraceFile* trace = nullptr;            // shows what the threads of the job do; not owned
  DeviceKind device = DeviceKind::kCpu;  // the device that runs the model
  bool check_ops = false;                // GPU errors name their op; slow
  int threads = 0;                       // threads of the CPU device; 0: all cores
  int gpu = 0;                           // index of the GPU on this machine
  // Train: this worker's rank, and the number of workers. All train the same model from the same
  // files with the same options, and each takes a part of every batch.
  uint32_t rank = 0, world_size = 1;
  std::string peers;  // "host:port" where worker 0 listens for the others; world_size > 1
  // Certificates of the connections between workers, which must make them workers of `cluster`;
  // none: plain text.
  TlsFiles tls = {};
  std::string cluster = "cistern";
  // The file system for models; not owned, must outlive the job. Null: the machine's own.
  FileSystem* files = nullptr;
  // Resume from the position of the newest commit, if any; durable servers only.
  bool resume = false;
  // With resume: the data is another than that of the last run, which must have finished. Trains it
  // from its start on the rows that are there; optimizer steps continue to count. metrics.jsonl of
  // the last run becomes metrics-1.jsonl, metrics-2.jsonl, ... If the last run was on this data, it
  // is resumed.
  bool more = false;
  // With more: the data is read from its start even if the last run was on it, and even if it
  // stopped inside its data, the rest of which is then not read.
  bool again = false;
  // Train: nobody reads the servers before or after a run that fails. Then servers that are not
  // durable need not hold whole passes before the end (cistern.commit_every).
  bool servers_end_with_run = false;
  // Durable servers: how long to wait for lost servers before the job fails. Several workers: how
  // long to wait for all workers, at the start and after one was lost.
  double recovery_seconds = 300;
  ColumnNames columns;                // for messages
  std::vector<std::string> warnings;  // train: of the data, written at the start of the log
};

// The score is that of the final state.
struct TrainSummary : RunFigures {
  uint64_t rows = 0;
  double seconds = 0, samples_per_second = 0;
  double first_step_seconds = 0;         // from the start of this job to its first step
  IdleTimes idle;                        // fractions of the time since then
  BusyTime busy;                         // of the time since then
  std::string model_dir;                 // empty: not saved
  std::optional<uint64_t> resumed_from;  // iterations completed before this job
  data::BadData::Counts skipped_data;    // files left out by this process, by cause
  std::vector<uint64_t> decoded_bytes;   // of samples, by worker, in this job
  uint64_t skipped_steps = 0;            // steps whose loss or gradient was not finite
  uint64_t kept_rows = 0;                // as in Progress, of all passes since the last loss
  uint64_t recoveries = 0;               // how often a pass was lost with a server
};

struct EvalSummary {
  uint64_t samples = 0, positives = 0, keys = 0, unseen_keys = 0;
  std::optional<double> auc;  // absent: one class only; `auc_note` explains
  std::string auc_note;
  std::optional<double> auc_error;  // MetricSet::AucError
  double logloss = 0;
  model::MetricValues metrics;  // other metrics in solver.eval_metrics
  std::shared_ptr<const report::ScoreDetail> scores;
  double seconds = 0;
};

// The tables that a model needs on the servers, for checks before anything starts.
absl::StatusOr<v1::Schema> SchemaOf(const model::ModelConfig& config);

// Trains `config` against the servers of `client` (connected; Train creates the tables).
//
// On durable servers, a pass that is lost with a server is trained again from the last commit once
// the server is back; the state never contains a sample twice. options.resume continues a run whose
// worker ended: kInvalidArgument if `config` would train something else. Errors: those of model,
// data and client; earlier commits stay on the servers.
//
// With several workers, each pulls, holds and pushes the rows of its share of the keys. Worker 0
// claims and commits, writes metrics and models, and makes all decisions. The workers' parts of a
// pass commit together or not at all. On durable servers, a lost worker is waited for like a lost
// server: restarted with `resume`, it continues with the others from the last commit.
absl::StatusOr<TrainSummary> Train(const model::ModelConfig& config, ParameterClient& client,
                                   const JobOptions& options);

// Evaluates the servers' committed state on `files` (file lists or Norm files; empty: the model's
// eval_source).
absl::StatusOr<EvalSummary> Evaluate(const model::ModelConfig& config, ParameterClient& client,
                                     const std::vector<std::string>& files,
                                     const JobOptions& options);

// Receives the labels, [n, label_dim] (below -0.5: unknown), and the predictions of each batch.
using OnPredictions = std::function<absl::Status(absl::Span<const float> labels,
                                                 absl::Span<const float> predictions)>;
// Appends the lines of each batch to `file`, if it holds one by then, and calls `visit`, if it is
// not null. file: outlives the result.
OnPredictions WriteLinesTo(const std::unique_ptr<NewFile>& file, size_t label_dim,
                           OnPredictions visit);

// Writes "label<TAB>prediction" (9 significant digits) for every sample of `files`, in order, to
// `output`, through a temporary file: a failed job leaves no output. With several labels, a line
// holds one "label<TAB>prediction" pair per label, separated by tabs. An empty `output`: no file is
// written.
//
// visit: may be null.
absl::StatusOr<EvalSummary> Predict(const model::ModelConfig& config, ParameterClient& client,
                                    const std::vector<std::string>& files,
                                    const std::string& output, const JobOptions& options,
                                    const OnPredictions& visit = nullptr);

// Predicts samples that are not in files of the model's format, in order. open: opens them; called
// once.
using OpenSamples = std::function<absl::StatusOr<std::unique_ptr<data::SampleReader>>()>;
absl::StatusOr<EvalSummary> PredictSamples(const model::ModelConfig& config,
                                           ParameterClient& client, const OpenSamples& open,
                                           const OnPredictions& visit, const JobOptions& options);

// Which tables of a model folder to read, and how (common/value/table_choice.h).
struct LoadChoice {
  bool upgrade = false;
  std::vector<std::string> tables;  // names; empty: all
};

// Replaces the servers' rows with a model folder (common/saved_model/model_folder.h) and sets their
// committed pass. The tables are those of `config`; kInvalidArgument if the folder's tables cannot
// be read into them. Claims a term. left_out: the tables that were not read; may be null. kAborted:
// a server was restarted meanwhile; try again.
absl::Status LoadModel(FileSystem& files, const model::ModelConfig& config, ParameterClient& client,
                       const std::string& folder, const LoadChoice& load = {},
                       std::vector<v1::TableLeftOut>* left_out = nullptr);

// The same for a writer that has claimed a term and created the tables. commit: holds the position
// and the clock of these rows.
absl::Status RestoreModel(FileSystem& files, ParameterClient& client, const std::string& folder,
                          const ParameterClient::CommitOptions& commit);

// Where a saved model tells its commit, if the servers keep commits (saved_commit.h).
enum class CommitPlace {
  kBeside,  // the folder has the same bytes as that of a run without commits
  kInside,
};
// Saves all rows of the servers as a model folder; atomically replaces an older `folder`.
absl::Status SaveModel(FileSystem& files, ParameterClient& client, const std::string& folder,
                       CommitPlace place = CommitPlace::kBeside);

// Copies the model folder `from` to `to`, which it replaces like SaveModel.
absl::Status CopyModel(FileSystem& files, const std::string& from, const std::string& to);

}  // namespace cistern
