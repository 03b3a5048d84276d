#include "cli/command/train_command.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "cli/command/dry_run.h"
#include "cli/command/train_data.h"
#include "cli/command/train_summary.h"
#include "cli/command/train_table.h"
#include "cli/session/run_files.h"
#include "cli/session/run_folder.h"
#include "cli/session/run_recipe.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress.h"
#include "common/base/pages.h"
#include "common/io/file_system.h"
#include "cuda/core/device.h"
#include "cuda/core/device_context.h"
#include "worker/client/backoff.h"
#include "worker/export/hugectr/hugectr_model.h"
#include "worker/model/graph/model_summary.h"
#include "worker/pass/data_source.h"
#include "worker/report/page.h"
#include "worker/train/metric_json.h"
#include "worker/train/position.h"

namespace cistern {
namespace {

RunFolder RunFolderOf(const TrainFlags& flags) {
  RunFolder run;
  run.out = flags.out;
  run.embedded = flags.model.fleet.servers.empty();
  // With --no-save-model, embedded servers keep no state either; a fleet's servers decide
  // themselves.
  run.keep_state = flags.durability == "commit" && !(run.embedded && flags.no_save_model);
  run.resume = flags.resume;
  run.overwrite = flags.overwrite;
  return run;
}

absl::StatusOr<JobOptions> TrainOptionsOf(const TrainFlags& flags, const WorkerRank& worker) {
  constexpr double kLongestLimit = 1e8;  // seconds: three years
  if (!(flags.recovery_limit >= 0 && flags.recovery_limit <= kLongestLimit)) {
    return absl::InvalidArgumentError(absl::StrCat("--recovery-limit ", flags.recovery_limit,
                                                   ": expected seconds, 0 to ", kLongestLimit));
  }
  CISTERN_ASSIGN_OR_RETURN(JobOptions options, JobOptionsOf(flags.model));
  options.out_dir = flags.out;
  options.save_model = !flags.no_save_model;
  options.rank = worker.rank;
  options.world_size = worker.world_size;
  options.peers = worker.peers;
  if (options.device == DeviceKind::kCuda) {
    CISTERN_ASSIGN_OR_RETURN(options.gpu, GpuOf(worker.local_rank, QueryGpus().gpus.size()));
  }
  options.resume = flags.resume;
  options.more = !flags.more.empty();
  options.recovery_seconds = flags.recovery_limit;
  return options;
}

RunSize SizeOf(const ModelConfig& config) {
  RunSize size;
  if (config.solver.max_iter > 0) {
    size.iterations = config.solver.max_iter;
  } else if (const std::optional<uint64_t> epoch = SamplesOfEpoch(config)) {
    size.samples = *epoch * config.solver.num_epochs;
  }
  return size;
}

constexpr char kResumeFix[] = "repeat this command with --resume to continue from the last commit";

absl::Status Interrupted(const TrainSummary& summary, const TrainFlags& flags, bool durable) {
  std::string where = "the last pass is committed";
  if (!summary.model_dir.empty()) absl::StrAppend(&where, " and saved in ", summary.model_dir);
  const bool lost = summary.model_dir.empty() && flags.model.fleet.servers.empty();
  if (lost) where = "nothing was saved (--no-save-model)";
  return WithFix(absl::CancelledError(
                     absl::StrCat("interrupted after iteration ", summary.iterations, "; ", where)),
                 durable ? kResumeFix : "");
}

// Adds a fix to the error of a failed run.
absl::Status WithTrainFix(const absl::Status& status, const TrainFlags& flags,
                          const WorkerRank& worker, bool durable) {
  const ExitCode code = ExitCodeOf(status);
  if (worker.world_size > 1 && code == ExitCode::kUnreachable) {
    return WithFix(status, absl::StrCat("check the other workers' logs, and which server is down "
                                        "(cistern status --servers ",
                                        flags.model.fleet.servers, "); start what is missing, and ",
                                        durable ? "repeat the command of every worker with --resume"
                                                : "restart all workers"));
  }
  if (flags.resume && KindOf(status) == ErrorKind::kOtherSchema) {
    return WithFix(status,
                   "--resume requires the model file, the seed and the --set flags that the run "
                   "started with: use those, or name another --out");
  }
  if (durable && code == ExitCode::kInterrupted) return WithFix(status, kResumeFix);
  if (!durable || code != ExitCode::kUnreachable) return WithFleetFix(status, flags.model.fleet);
  return WithFix(status, absl::StrCat("start the servers that are down (cistern status --servers ",
                                      flags.model.fleet.servers, "), and ", kResumeFix));
}

// Refuses a model that does not fit this machine's memory. Otherwise the kernel would kill this
// process, or another one, without a message in the middle of the run.
absl::Status CheckMemory(const ModelConfig& config, const ModelSummary& summary) {
  const uint64_t machine = DeviceContext().pool().cap_bytes();
  const uint64_t wanted = summary.parameter_bytes + summary.step_bytes();
  if (wanted <= machine) return absl::OkStatus();
  const auto largest = std::max_element(
      summary.layers.begin(), summary.layers.end(),
      [](const LayerSummary& a, const LayerSummary& b) { return a.parameters < b.parameters; });
  return absl::InvalidArgumentError(absl::StrCat(
      config.path, ": the model takes ", BytesText(wanted), ", but this machine has ",
      BytesText(machine), ": ", summary.parameters, " dense parameters (", largest->parameters,
      " in layer '", largest->name, "', ", largest->path, ") take ",
      BytesText(summary.parameter_bytes), ", a step of ", summary.batchsize, " samples ",
      BytesText(summary.step_bytes()), "; lower that layer's width, or solver.batchsize"));
}

// Refuses a model, model files or data that cannot be trained, before the run writes anything.
absl::Status CheckBeforeWriting(const ModelConfig& config, const JobOptions& options, bool resume) {
  CISTERN_ASSIGN_OR_RETURN(const ModelSummary summary, Summarize(config));
  if (options.device == DeviceKind::kCpu) {
    CISTERN_RETURN_IF_ERROR(CheckMemory(config, summary));
  }
  if (resume) return absl::OkStatus();  // the run has read the files already, and may be finished
  LocalFileSystem files;
  CISTERN_RETURN_IF_ERROR(LookAtHugectrModel(files, config).status());
  return AddContext(CheckTrainingData(config), config.path);
}

// A run folder in place of the model file is also where the run continues.
absl::Status TakeRun(TrainFlags* flags) {
  if (IsTable(flags->model.config)) return absl::OkStatus();  // it may be a folder too
  std::string folder;
  CISTERN_RETURN_IF_ERROR(TakeRunFolder(&flags->model, &folder));
  if (flags->out.empty()) flags->out = folder;
  return absl::OkStatus();
}

// The recipe of the data that a run reads, which becomes a part of the run's identity.
absl::StatusOr<std::optional<FoundRecipe>> TakeRecipe(const TrainFlags& flags,
                                                      ModelConfig* config) {
  CISTERN_ASSIGN_OR_RETURN(std::optional<FoundRecipe> recipe, RecipeOfTraining(*config));
  if (flags.resume) CISTERN_RETURN_IF_ERROR(CheckRunRecipe(flags.out, recipe));
  if (recipe) config->values.emplace_back(kRecipeValue, HashText(recipe->recipe));
  return recipe;
}

ColumnNames ColumnNamesOf(const Recipe& recipe) {
  ColumnNames names;
  for (const Recipe::Slot& slot : recipe.slots) names.slots.push_back(slot.column);
  for (const Recipe::Dense& dense : recipe.dense) names.dense.push_back(dense.column);
  return names;
}

// Opens the fleet that a run trains on. With --resume the servers existed before, so this waits for
// them, up to --recovery-limit, as training does.
absl::StatusOr<std::unique_ptr<FleetSession>> OpenFleet(const TrainFlags& flags,
                                                        const std::string& state_root,
                                                        const std::atomic<bool>& interrupted,
                                                        Console& console) {
  Backoff backoff(absl::Seconds(flags.recovery_limit), 0);
  while (true) {
    absl::StatusOr<std::unique_ptr<FleetSession>> fleet =
        FleetSession::Open(flags.model.fleet, state_root);
    const bool waits = flags.resume && IsRetryable(fleet.status()) && !interrupted;
    if (!waits) return fleet;
    const bool first = backoff.failures() == 0;
    const std::optional<absl::Duration> delay = backoff.Next(Backoff::Clock::now());
    if (!delay) return fleet;
    if (first) {
      console.Say(absl::StrCat("note: waiting up to ", flags.recovery_limit,
                               " s for the servers: ", fleet.status().message()));
    }
    absl::SleepFor(*delay);
  }
}

// Rows of an earlier training are trained further only if that is what the user means.
absl::Status CheckHeldRows(const TrainFlags& flags, const ParameterClient& client,
                           Console& console) {
  const PassId pass = client.committed_pass();
  if (pass == 0 || flags.resume) return absl::OkStatus();
  if (!flags.continues && !flags.model.fleet.take_over) {
    return WithFix(
        absl::InvalidArgumentError(absl::StrCat("the servers already hold rows, of pass ", pass,
                                                " of an earlier training or a loaded model")),
        "add --continue to train these rows further, from the start of the data; --resume to "
        "continue an interrupted run; or start servers with an empty --data_dir");
  }
  console.Say(absl::StrCat("note: the servers hold pass ", pass, "; training continues from it"));
  return absl::OkStatus();
}

// Counts the rows of all passes, not only of the last one. Retries, because the run is finished and
// saved: a server that is just restarting must not turn it into a failure.
absl::Status CountRows(const TrainFlags& flags, ParameterClient& client, uint64_t* rows) {
  const double limit = client.durable() ? flags.recovery_limit : flags.model.fleet.connect_timeout;
  return WithRetry(absl::Seconds(limit), 0, [&]() -> absl::Status {
    CISTERN_ASSIGN_OR_RETURN(*rows, RowsOn(client));
    return absl::OkStatus();
  });
}

}  // namespace

void AddTrainFlags(Command& command, TrainFlags* flags) {
  AddModelFlags(command, &flags->model);
  command.Flag("--out", &flags->out,
               {"DIR",
                "Folder of the run, created if missing: metrics.jsonl and model/. Required unless "
                "--dry-run is set.",
                "--out runs/deepfm"});
  command.Switch("--dry-run", &flags->dry_run,
                 {"",
                  "Trains nothing: checks the model file and prints its graph with shapes and "
                  "parameters, its tables, and the memory of a step.",
                  "--dry-run"});
  command.Switch("--no-save-model", &flags->no_save_model,
                 {"", "Writes metrics but no model.", "--no-save-model"});
  command.Switch("--overwrite", &flags->overwrite,
                 {"", "Replaces the run in the folder.", "--overwrite"});
  command.Switch(
      "--resume", &flags->resume,
      {"", "Continues after the last commit of a run that ended or crashed.", "--resume"});
  command.Switch(
      "--continue", &flags->continues,
      {"",
       "With --servers: trains the rows that the servers hold further, from the start of "
       "the data. Optimizer steps continue to count.",
       "--continue"});
  command.List(
      "--more", &flags->more, true,
      {"FILE,...",
       "With --resume: continues a finished run with other data, such as the next day's: file "
       "lists, data files, or text to convert by the recipe of the run.",
       "--resume --more day2.csv"});
  command.Choice("--durability", &flags->durability,
                 {"commit|none",
                  "Without --servers: whether to keep every commit in DIR/state, so that --resume "
                  "can continue from the last one after a crash. With --no-save-model nothing is "
                  "kept.",
                  "--durability none"});
  command.Flag("--recovery-limit", &flags->recovery_limit,
               {"SECONDS",
                "How long to wait for lost servers and workers if the servers keep their commits; "
                "the pass is then trained again. Several workers: also how long to wait for all of "
                "them to join.",
                "--recovery-limit 60"});
}

absl::StatusOr<Report> RunTrain(const TrainFlags& given, const WorkerRank& worker,
                                Console& console) {
  const std::atomic<bool>* interrupted = CatchInterrupts();
  TrainFlags flags = given;
  CISTERN_RETURN_IF_ERROR(TakeTables(&flags));
  CISTERN_RETURN_IF_ERROR(TakeRun(&flags));
  CISTERN_RETURN_IF_ERROR(TakeTable(worker, RunFolderOf(flags), console, &flags));
  CISTERN_RETURN_IF_ERROR(TakeMore(worker, console, &flags));
  CISTERN_ASSIGN_OR_RETURN(ModelConfig config, ReadModelConfig(flags.model));
  for (const std::string& note : config.notes) console.Say("note: " + note);
  if (flags.dry_run) return DryRun(config);
  if (flags.out.empty()) {
    return WithFix(absl::InvalidArgumentError("--out is required"),
                   "name a folder for the run (--out runs/a), or add --dry-run");
  }
  CISTERN_ASSIGN_OR_RETURN(JobOptions options, TrainOptionsOf(flags, worker));
  CISTERN_ASSIGN_OR_RETURN(const std::optional<FoundRecipe> recipe, TakeRecipe(flags, &config));
  if (recipe) options.columns = ColumnNamesOf(recipe->recipe);
  options.warnings = flags.warnings;
  CISTERN_RETURN_IF_ERROR(CheckBeforeWriting(config, options, flags.resume));
  const RunFolder run = RunFolderOf(flags);
  CISTERN_ASSIGN_OR_RETURN(const std::string model_file, ReadModelFile(flags.model));
  const bool leads = worker.rank == 0;  // only rank 0 writes the run's files
  if (leads) {
    CISTERN_RETURN_IF_ERROR(PrepareRunFolder(run));
    if (!flags.resume) CISTERN_RETURN_IF_ERROR(WriteRunFiles(flags.out, model_file, recipe, false));
  }
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<FleetSession> fleet,
                           OpenFleet(flags, run.state_root(), *interrupted, console));
  if (leads) CISTERN_RETURN_IF_ERROR(CheckHeldRows(flags, fleet->client(), console));
  if (StartsFromHugectrModel(config)) {
    console.Say(flags.resume
                    ? "note: solver.dense_model_file and sparse_model_file apply to a fresh start "
                      "only; a resumed run keeps its own weights"
                    : "note: starts from the weights of solver.dense_model_file and "
                      "sparse_model_file");
  }
  std::atomic<bool> ended = false;
  options.ended = &ended;
  LiveState live;
  ProgressPrinter printer(&console, &live, SizeOf(config));
  options.interrupted = interrupted;
  options.live = &live;
  RunRecord record = BeginRecord(flags.model, config, fleet->client(), options);
  options.progress = [&, recorded = !leads](const Progress& progress) mutable {
    // At the first event the folder is this run's. At the end a failure becomes a warning.
    if (!std::exchange(recorded, true)) {
      WriteRecord(flags.out, record).IgnoreError();
      // Whoever publishes commits of this run needs the recipe that it is trained with. The end of
      // the run reports a failure.
      if (flags.resume) UpdateRunRecipe(flags.out, recipe).IgnoreError();
    }
    printer.Show(progress);
    if (flags.goes_on && !flags.goes_on(progress)) ended = true;
  };
  KeepFreedMemory();
  absl::StatusOr<TrainSummary> summary = Train(config, fleet->client(), options);
  const bool durable = fleet->client().durable();
  printer.Finish();
  if (!summary.ok()) return WithTrainFix(summary.status(), flags, worker, durable);
  if (leads) {
    // A resumed run has accepted the model file only now.
    if (flags.resume) CISTERN_RETURN_IF_ERROR(WriteRunFiles(flags.out, model_file, recipe, true));
    CISTERN_RETURN_IF_ERROR(
        WithTrainFix(CountRows(flags, fleet->client(), &summary->rows), flags, worker, durable));
  }
  Report report{JsonOf(*summary), TextOf(*summary), absl::OkStatus()};
  if (leads && !summary->interrupted) {
    CISTERN_RETURN_IF_ERROR(
        WithTrainFix(ScoreFinalTest(flags, config, fleet->client(), options, &report, &record),
                     flags, worker, durable));
  }
  if (leads) {
    const std::string page =
        WriteRunFiles(flags.out, *summary, fleet->client(), std::move(record), console);
    report.json["report"] = page;
    if (!page.empty()) absl::StrAppend(&report.text, "report               ", page, "\n");
  }
  if (summary->interrupted && !ended) report.outcome = Interrupted(*summary, flags, durable);
  return report;
}

void AddTrainCommand(Command& root) {
  auto flags = std::make_shared<TrainFlags>();
  Command& command = root.Add(
      "train", "Trains a model: with servers inside this process, or with a fleet (--servers).",
      "cistern train deepfm.json --out runs/deepfm --set solver.batchsize=4096");
  AddTrainFlags(command, flags.get());
  AddTableModelFlags(command, &flags->table);
  command.Arguments("FILE", &flags->tables,
                    {"FILE", "Table: more files of it.", "part-1.csv part-2.csv"});
  command.Flag(
      "--valid", &flags->table.valid,
      {"FILE",
       "Table, --more: evaluates on this table, which chooses the epoch. By default a tenth "
       "of the rows is held out: the latest ones if a column holds times.",
       "--valid valid.csv"});
  command.Flag(
      "--test", &flags->table.test,
      {"FILE", "With --valid: scores this table once, at the end. Without: the same as --valid.",
       "--test test.csv"});
  command.Does([flags](Console& console) { return RunTrain(*flags, WorkerRank{}, console); });
}

}  // namespace cistern
