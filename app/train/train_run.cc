#include "app/train/train_run.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/time/clock.h"
#include "app/export/publish_beside.h"
#include "app/run/run_files.h"
#include "app/run/run_recipe.h"
#include "app/track/tracker.h"
#include "common/base/amount_text.h"
#include "common/base/hash_text.h"
#include "common/base/log.h"
#include "common/base/names.h"
#include "common/base/pages.h"
#include "common/io/file_system.h"
#include "cuda/core/device.h"
#include "cuda/core/device_context.h"
#include "worker/client/backoff.h"
#include "worker/export/hugectr/hugectr_model.h"
#include "worker/model/graph/model_summary.h"
#include "worker/pass/data_source.h"
#include "worker/train/live_state.h"
#include "worker/train/position.h"
#include "worker/train/train_figures.h"

namespace cistern::app {
namespace {

absl::StatusOr<JobOptions> JobOf(const TrainRunOptions& options) {
  constexpr double kLongestLimit = 1e8;  // seconds: three years
  if (!(options.recovery_seconds >= 0 && options.recovery_seconds <= kLongestLimit)) {
    return WithOptions(
        absl::InvalidArgumentError(absl::StrCat("a limit of ", options.recovery_seconds,
                                                ": expected seconds, 0 to ", kLongestLimit)),
        {"recovery_limit"});
  }
  CISTERN_ASSIGN_OR_RETURN(JobOptions job, JobOptionsOf(options.model));
  job.out_dir = options.out;
  job.save_model = options.save_model;
  job.rank = options.worker.rank;
  job.world_size = options.worker.world_size;
  job.peers = options.worker.peers;
  job.tls = options.model.fleet.tls;
  job.cluster = options.model.fleet.cluster;
  if (job.device == DeviceKind::kCuda) {
    CISTERN_ASSIGN_OR_RETURN(job.gpu, GpuOf(options.worker.local_rank, QueryGpus().gpus.size()));
  }
  job.resume = options.resume;
  job.more = options.more;
  job.recovery_seconds = options.recovery_seconds;
  job.warnings = options.warnings;
  return job;
}

// Refuses a model that does not fit this machine's memory. Otherwise the kernel would kill this
// process, or another one, without a message in the middle of the run.
absl::Status CheckMemory(const model::ModelConfig& config, const model::ModelSummary& summary) {
  const uint64_t machine = DeviceContext().pool().cap_bytes();
  const uint64_t wanted = summary.parameter_bytes + summary.step_bytes();
  if (wanted <= machine) return absl::OkStatus();
  const auto largest =
      std::max_element(summary.layers.begin(), summary.layers.end(),
                       [](const model::LayerSummary& a, const model::LayerSummary& b) {
                         return a.parameters < b.parameters;
                       });
  return absl::InvalidArgumentError(absl::StrCat(
      config.path, ": the model takes ", BytesText(wanted), ", but this machine has ",
      BytesText(machine), ": ", summary.parameters, " dense parameters (", largest->parameters,
      " in layer '", largest->name, "', ", largest->path, ") take ",
      BytesText(summary.parameter_bytes), ", a step of ", summary.batchsize, " samples ",
      BytesText(summary.step_bytes()), "; lower that layer's width, or solver.batchsize"));
}

// Refuses a model, model files or data that cannot be trained, before the run writes anything.
absl::Status CheckBeforeWriting(const model::ModelConfig& config, const JobOptions& options,
                                bool resume) {
  CISTERN_ASSIGN_OR_RETURN(const model::ModelSummary summary, model::Summarize(config));
  if (options.device == DeviceKind::kCpu) {
    CISTERN_RETURN_IF_ERROR(CheckMemory(config, summary));
  }
  if (resume) return absl::OkStatus();  // the run has read the files already, and may be finished
  LocalFileSystem files;
  CISTERN_RETURN_IF_ERROR(ReadHugectrStart(files, config).status());
  return AddContext(CheckTrainingData(config), config.path);
}

ColumnNames ColumnNamesOf(const data::Recipe& recipe) {
  ColumnNames names;
  for (const data::Recipe::Slot& slot : recipe.slots) names.slots.push_back(slot.column);
  for (const data::Recipe::Dense& dense : recipe.dense) names.dense.push_back(dense.column);
  return names;
}

// The recipe of the data that a run reads, which becomes a part of the run's identity.
absl::StatusOr<std::optional<data::FoundRecipe>> RecipeOfRun(const TrainRunOptions& options,
                                                             model::ModelConfig* config) {
  CISTERN_ASSIGN_OR_RETURN(
      std::optional<data::FoundRecipe> recipe,
      config->cistern.stream ? RecipeOfStream(options.out, config) : RecipeOfTraining(*config));
  if (options.resume) CISTERN_RETURN_IF_ERROR(CheckRunRecipe(options.out, recipe));
  if (recipe) config->values.emplace_back(kRecipeValue, data::HashTextOf(recipe->recipe));
  return recipe;
}

// The file of this worker's trace: "a.json", or "a-1.json" for one of several workers.
std::string TraceOf(const TrainRunOptions& options) {
  if (options.worker.world_size == 1) return options.trace;
  std::filesystem::path path = options.trace;
  const std::string name =
      absl::StrCat(path.stem().string(), "-", options.worker.rank, path.extension().string());
  return path.replace_filename(name).string();
}

// One run. Its functions are its steps, in this order.
class Run {
 public:
  Run(model::ModelConfig config, const TrainRunOptions& options, const TrainRunCalls& calls)
      : config_(std::move(config)), options_(options), calls_(calls) {}

  absl::StatusOr<TrainRunResult> Do() {
    CISTERN_RETURN_IF_ERROR(Prepare());
    CISTERN_RETURN_IF_ERROR(StartMetrics());
    CISTERN_RETURN_IF_ERROR(StartTrace());
    CISTERN_RETURN_IF_ERROR(OpenFleet());
    CISTERN_RETURN_IF_ERROR(OpenTrackers());
    CISTERN_RETURN_IF_ERROR(StartPublisher());
    const absl::Status trained = Train();
    trackers_.End(!trained.ok()                   ? RunOutcome::kFailed
                  : result_.summary.interrupted() ? RunOutcome::kInterrupted
                                                  : RunOutcome::kFinished);
    CISTERN_RETURN_IF_ERROR(Explained(trained));
    if (leads()) {
      CISTERN_RETURN_IF_ERROR(Explained(CountRows()));
      if (!result_.summary.interrupted()) CISTERN_RETURN_IF_ERROR(Explained(ScoreFinalTest()));
      result_.page = WriteRunFiles(options_.out, result_.summary, client(), record_, note_);
    }
    if (publisher_ != nullptr) {
      CISTERN_ASSIGN_OR_RETURN(result_.published, publisher_->Finish());
    }
    return std::move(result_);
  }

 private:
  bool leads() const { return options_.worker.rank == 0; }  // only rank 0 writes the run's files
  ParameterClient& client() { return fleet_->client(); }
  bool stops() const { return calls_.interrupted != nullptr && *calls_.interrupted; }

  absl::Status Prepare();
  absl::Status ChooseId();
  absl::Status StartMetrics();
  absl::Status StartTrace();
  absl::Status OpenFleet();
  absl::Status OpenTrackers();
  absl::Status CheckPublishing() const;
  absl::Status StartPublisher();
  absl::Status CheckHeldRows();
  absl::Status Train();
  void Show(const Progress& progress);
  absl::Status CountRows();
  absl::Status ScoreFinalTest();
  absl::Status Explained(const absl::Status& status);

  model::ModelConfig config_;
  const TrainRunOptions& options_;
  const TrainRunCalls& calls_;
  const OnNote note_ = calls_.note ? calls_.note : [](const std::string&) {};
  LocalFileSystem files_;
  JobOptions job_;
  std::optional<data::FoundRecipe> recipe_;
  std::string model_file_;  // its text, with the overrides
  std::unique_ptr<TraceFile> trace_;
  std::unique_ptr<FleetSession> fleet_;
  report::RunRecord record_;
  bool recorded_ = false;
  Trackers trackers_;
  std::string run_id_;  // empty: not known here
  std::atomic<bool> ended_{false};
  TrainRunResult result_;
  std::unique_ptr<PublishBeside> publisher_;
  LiveState own_live_;  // where the caller has none
  LiveState* const live_ = calls_.live != nullptr ? calls_.live : &own_live_;
  TrainFigures figures_{live_, options_.worker.rank, options_.worker.world_size};
  std::unique_ptr<MetricsEndpoint> endpoint_;  // last: it reads figures_
};

absl::Status Run::Prepare() {
  if (options_.out.empty()) {
    return WithFix(
        WithOptions(absl::InvalidArgumentError("a run needs a folder for its results"), {"out"}),
        "name a folder, such as runs/a");
  }
  CISTERN_RETURN_IF_ERROR(ChooseId());
  CISTERN_RETURN_IF_ERROR(CheckPublishing());
  CISTERN_ASSIGN_OR_RETURN(job_, JobOf(options_));
  CISTERN_ASSIGN_OR_RETURN(recipe_, RecipeOfRun(options_, &config_));
  if (recipe_) job_.columns = ColumnNamesOf(recipe_->recipe);
  CISTERN_RETURN_IF_ERROR(CheckBeforeWriting(config_, job_, options_.resume));
  CISTERN_ASSIGN_OR_RETURN(model_file_, ReadModelFile(options_.model));
  if (!leads()) return absl::OkStatus();
  CISTERN_RETURN_IF_ERROR(PrepareRunFolder(RunFolderOf(options_)));
  if (options_.resume) return absl::OkStatus();
  return WriteRunFiles(options_.out, model_file_, recipe_, false);
}

absl::Status Run::ChooseId() {
  run_id_ = options_.run_id;
  if (!run_id_.empty()) {
    CISTERN_RETURN_IF_ERROR(
        WithOptions(AddContext(CheckName(run_id_), "the id of the run"), {"run_id"}));
  } else if (leads()) {
    run_id_ = RunIdOf(options_.out, options_.resume);
  }
  figures_.SetRun(run_id_);
  SetLogRun(run_id_);
  return absl::OkStatus();
}

absl::Status Run::StartMetrics() {
  if (!options_.metrics.is_set()) return absl::OkStatus();
  CISTERN_ASSIGN_OR_RETURN(
      endpoint_, MetricsEndpoint::Start(options_.metrics, [this] { return figures_.Text(); }));
  note_("note: metrics=" + endpoint_->Where());
  return absl::OkStatus();
}

absl::Status Run::StartTrace() {
  if (options_.trace.empty()) return absl::OkStatus();
  TraceOptions trace;
  trace.path = TraceOf(options_);
  trace.run = run_id_;
  trace.rank = options_.worker.rank;
  absl::StatusOr<std::unique_ptr<TraceFile>> created = TraceFile::Create(files_, trace);
  if (!created.ok()) return WithOptions(AddContext(created.status(), "the trace"), {"trace"});
  trace_ = *std::move(created);
  job_.trace = trace_.get();
  return absl::OkStatus();
}

// With `resume` the servers existed before, so this waits for them, up to the recovery limit, as
// training does.
absl::Status Run::OpenFleet() {
  const std::string state_root = RunFolderOf(options_).state_root();
  FleetOptions fleet = options_.model.fleet;
  if (!run_id_.empty()) absl::StrAppend(&fleet.program, ", run ", run_id_);
  fleet.run = run_id_;
  fleet.trace = trace_.get();
  Backoff backoff(absl::Seconds(options_.recovery_seconds), 0);
  while (fleet_ == nullptr) {
    absl::StatusOr<std::unique_ptr<FleetSession>> opened = FleetSession::Open(fleet, state_root);
    const bool first = backoff.failures() == 0;
    const bool waits = options_.resume && IsRetryable(opened.status()) && !stops();
    const std::optional<absl::Duration> delay =
        waits ? backoff.Next(Backoff::Clock::now()) : std::nullopt;
    if (opened.ok()) {
      fleet_ = *std::move(opened);
    } else if (!delay) {
      return opened.status();
    } else {
      if (first) {
        note_(absl::StrCat("note: waiting up to ", options_.recovery_seconds,
                           " s for the servers: ", opened.status().message()));
      }
      absl::SleepFor(*delay);
    }
  }
  result_.durable = client().durable();
  job_.servers_end_with_run = fleet.servers.empty();
  return leads() ? CheckHeldRows() : absl::OkStatus();
}

absl::Status Run::OpenTrackers() {
  if (!leads() || options_.log.empty()) return absl::OkStatus();
  TrackedRun run;
  run.folder = options_.log_dir.empty() ? options_.out : options_.log_dir;
  run.id = run_id_;
  run.name = std::filesystem::path(options_.out).lexically_normal().filename().string();
  if (run.name.empty()) run.name = run_id_;
  run.values = config_.values;
  CISTERN_ASSIGN_OR_RETURN(trackers_, Trackers::Open(files_, options_.log, run));
  return absl::OkStatus();
}

// The publisher reads the commits of the run from its folder.
absl::Status Run::CheckPublishing() const {
  if (options_.publish.empty() || !leads()) return absl::OkStatus();
  if (!RunFolderOf(options_).state_root().empty()) {
    VersionOptions version;
    version.out = options_.publish;
    return WithOptions(CheckServingPlace(version), {"publish"});
  }
  const absl::Status refused = absl::InvalidArgumentError(
      "publishing follows the commits that a run keeps in its own folder, and this one keeps none");
  if (!options_.model.fleet.servers.empty()) {
    return WithFix(WithOptions(refused, {"publish", "servers"}),
                   "for servers elsewhere, follow their data_dir with cistern publish");
  }
  return WithFix(WithOptions(refused, {"publish", "durability", "no_save_model"}),
                 "let the run keep its commits and save its model");
}

absl::Status Run::StartPublisher() {
  if (options_.publish.empty() || !leads()) return absl::OkStatus();
  PublishOptions publish;
  publish.model.config = publish.state = options_.out;
  publish.version.out = options_.publish;
  CISTERN_ASSIGN_OR_RETURN(publisher_, PublishBeside::Start(publish, note_, calls_.published));
  return absl::OkStatus();
}

// Refuses to train on existing rows unless the options say so.
absl::Status Run::CheckHeldRows() {
  const PassId pass = client().committed_pass();
  if (pass == 0 || options_.resume) return absl::OkStatus();
  if (!options_.continues && !options_.model.fleet.take_over) {
    return WithFix(
        WithOptions(
            absl::InvalidArgumentError(absl::StrCat("the servers already hold rows, of pass ", pass,
                                                    " of an earlier training or a loaded model")),
            {"continue", "resume"}),
        "continue with these rows, from the start of the data; resume an interrupted run; or start "
        "servers with an empty data_dir");
  }
  note_(absl::StrCat("note: the servers hold pass ", pass, "; training continues from it"));
  return absl::OkStatus();
}

absl::Status Run::Train() {
  if (StartsFromHugectrModel(config_)) {
    note_(
        options_.resume
            ? "note: solver.dense_model_file and sparse_model_file apply to a fresh start only; a "
              "resumed run keeps its own weights"
            : "note: starts from the weights of solver.dense_model_file and sparse_model_file");
  }
  job_.ended = &ended_;
  job_.interrupted = calls_.interrupted;
  job_.live = live_;
  job_.figures = &figures_;
  job_.progress = [this](const Progress& progress) { Show(progress); };
  record_ = BeginRecord(config_, client(), job_);
  record_.run_id = run_id_;
  record_.set = options_.model.set;
  record_.device = options_.model.device;
  record_.servers_at = options_.model.fleet.servers;
  recorded_ = !leads();
  KeepFreedMemory();
  CISTERN_ASSIGN_OR_RETURN(result_.summary, cistern::Train(config_, client(), job_));
  result_.ended = ended_;
  // A resumed run has accepted the model file only now.
  if (!leads() || !options_.resume) return absl::OkStatus();
  return WriteRunFiles(options_.out, model_file_, recipe_, true);
}

void Run::Show(const Progress& progress) {
  // At the first event the folder is this run's. At the end a failure becomes a warning.
  if (!std::exchange(recorded_, true)) {
    WriteRecord(options_.out, record_).IgnoreError();
    // Whoever publishes commits of this run needs the recipe that it is trained with. The end of
    // the run reports a failure.
    if (options_.resume) UpdateRunRecipe(options_.out, recipe_).IgnoreError();
  }
  trackers_.Observe(progress);
  if (calls_.progress && !calls_.progress(progress)) ended_ = true;
}

// Counts the rows of all passes, not only of the last one. Retries, because the run is finished and
// saved: a server that is just restarting must not turn it into a failure.
absl::Status Run::CountRows() {
  const double limit =
      client().durable() ? options_.recovery_seconds : options_.model.fleet.connect_timeout;
  return WithRetry(absl::Seconds(limit), 0, [&]() -> absl::Status {
    CISTERN_ASSIGN_OR_RETURN(result_.summary.rows, RowsOn(client()));
    return absl::OkStatus();
  });
}

absl::Status Run::ScoreFinalTest() {
  if (options_.final_test.empty()) return absl::OkStatus();
  JobOptions once = job_;
  once.out_dir = "";
  once.progress = nullptr;
  once.resume = once.more = false;
  CISTERN_ASSIGN_OR_RETURN(result_.final_test,
                           Evaluate(config_, client(), {options_.final_test}, once));
  const EvalSummary& score = *result_.final_test;
  record_.test =
      report::RunRecord::Test{options_.final_test_name, score.samples, score.auc, score.logloss};
  return absl::OkStatus();
}

// Adds what to do about the error of a failed run.
absl::Status Run::Explained(const absl::Status& status) {
  const bool unreachable = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
  if (options_.worker.world_size > 1 && unreachable) {
    return WithFix(
        WithOptions(status, {StatusOption(options_.model.fleet), "resume"}),
        absl::StrCat("check the other workers' logs, and which server is down; start what is "
                     "missing, and ",
                     result_.durable ? "resume every worker" : "restart all workers"));
  }
  if (options_.resume && KindOf(status) == ErrorKind::kOtherSchema) {
    return WithFix(WithOptions(status, {"set", "out"}),
                   "a resumed run needs the model file, the seed and the overrides that it started "
                   "with: use those, or name another folder");
  }
  if (result_.durable && absl::IsCancelled(status)) {
    return WithFix(WithOptions(status, {"resume"}),
                   "resume the run to continue from the last commit");
  }
  if (!result_.durable || !unreachable) return WithFleetFix(status, options_.model.fleet);
  return WithFix(
      WithOptions(status, {StatusOption(options_.model.fleet), "resume"}),
      "start the servers that are down, and resume the run to continue from the last commit");
}

}  // namespace

RunFolder RunFolderOf(const TrainRunOptions& options) {
  RunFolder run;
  run.out = options.out;
  run.embedded = options.model.fleet.servers.empty();
  // Without a model, embedded servers keep no state either; a fleet's servers decide themselves.
  run.keep_state = options.keep_commits && !(run.embedded && !options.save_model);
  run.resume = options.resume;
  run.overwrite = options.overwrite;
  return run;
}

absl::StatusOr<TrainRunResult> TrainRun(model::ModelConfig config, const TrainRunOptions& options,
                                        const TrainRunCalls& calls) {
  return Run(std::move(config), options, calls).Do();
}

}  // namespace cistern::app
