#include "cli/command/train_command.h"

#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "app/data/table_file.h"
#include "app/run/run_folder.h"
#include "app/train/train_data.h"
#include "app/train/train_json.h"
#include "app/train/train_run.h"
#include "cli/command/dry_run.h"
#include "cli/command/publish_command.h"
#include "cli/command/shared_flags.h"
#include "cli/command/train_on_console.h"
#include "cli/command/train_summary.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/interrupt.h"

namespace cistern::cli {
namespace {

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

// The options of a run, but for its place of metrics, which may be wrong, and its data.
app::TrainRunOptions TrainOptionsOf(const TrainFlags& flags, const app::WorkerRank& worker) {
  app::TrainRunOptions options;
  options.model = flags.model;
  options.out = flags.out;
  options.save_model = !flags.no_save_model;
  options.overwrite = flags.overwrite;
  options.resume = flags.resume;
  options.continues = flags.continues;
  options.keep_commits = flags.durability == "commit";
  options.recovery_seconds = flags.recovery_limit;
  options.worker = worker;
  options.run_id = flags.run_id;
  options.log = flags.log;
  options.log_dir = flags.log_dir;
  options.trace = flags.trace;
  options.publish = flags.publish;
  return options;
}

absl::Status CheckMoreFlag(const TrainFlags& flags) {
  if (flags.more.empty()) return absl::OkStatus();
  if (!flags.resume) {
    return WithFix(absl::InvalidArgumentError("--more continues a finished run"),
                   "add --resume and --out, the folder of the run");
  }
  if (!flags.out.empty() || app::IsRunFolder(flags.model.config)) return absl::OkStatus();
  return WithFix(
      absl::InvalidArgumentError("--more continues a finished run, whose folder is not known"),
      "add --out, the folder of the run");
}

absl::Status CheckStreamFlag(const TrainFlags& flags) {
  if (flags.stream.empty()) return absl::OkStatus();
  const std::string& model = flags.model.config;
  if (app::IsTable(model)) {
    return WithFix(absl::InvalidArgumentError(
                       absl::StrCat("--stream needs a model, and '", model, "' is a table")),
                   absl::StrCat("train the table first (cistern train ", model,
                                " --out RUN), then continue on the stream: cistern train RUN "
                                "--stream ",
                                flags.stream));
  }
  if (flags.more.empty()) return absl::OkStatus();
  return WithFix(absl::InvalidArgumentError("--stream and --more exclude each other"),
                 "train the files with --more first, then the stream");
}

// What app::ApplyTrainData refuses too, in the words of flags.
absl::Status CheckDataFlags(const TrainFlags& flags, const app::TableOptions& table) {
  CISTERN_RETURN_IF_ERROR(CheckStreamFlag(flags));
  const std::string& model = flags.model.config;
  if (!app::IsTable(model)) {
    const std::string file =
        app::IsRunFolder(model) ? absl::StrCat(model, "/", app::kRunModelFile) : model;
    CISTERN_RETURN_IF_ERROR(
        CheckNoTableFlag(app::OptionWithoutTable(model, table), file, "a model file"));
    return CheckMoreFlag(flags);
  }
  const auto refuse = [](const std::string& what, const std::string& fix) {
    return WithFix(absl::InvalidArgumentError(what), fix);
  };
  if (flags.resume || !flags.more.empty()) {
    return refuse(absl::StrCat(model, " is a table, not a run to resume"),
                  absl::StrCat("cistern train ", flags.out.empty() ? "RUN" : flags.out,
                               " --resume continues a run; --more adds data to it"));
  }
  if (flags.dry_run) {
    return refuse(absl::StrCat("--dry-run: ", model, " is a table, not a model file"),
                  absl::StrCat("cistern init ", model, " writes the model file"));
  }
  if (flags.out.empty()) return refuse("--out is required", "name a folder for the run");
  return absl::OkStatus();
}

// Makes a table, --more or --stream the data of the run.
absl::Status ApplyData(const TrainFlags& flags, Console& console, app::TrainRunOptions* options) {
  app::TrainData data;
  CISTERN_ASSIGN_OR_RETURN(data.table, TableOptionsOf(flags.table));
  data.tables = flags.tables;
  data.more = flags.more;
  data.stream = {flags.stream, flags.once};
  CISTERN_RETURN_IF_ERROR(CheckDataFlags(flags, data.of_table()));
  const absl::Status status = app::ApplyTrainData(data, options, TableCallsOn(console, data.table));
  console.Update("");
  return WithTrainFix(WithTableFix(status), options->model);
}

Report ReportOf(const app::TrainRunResult& run, const app::TrainRunOptions& options) {
  const bool leads = options.worker.rank == 0;
  Report report{app::JsonOf(run.summary), TextOf(run.summary), absl::OkStatus()};
  if (run.final_test) AddFinalTest(*run.final_test, options.final_test_name, &report);
  if (leads) report.json["report"] = run.page;
  if (run.published) report.json["published"] = app::JsonOf(*run.published);
  if (!run.page.empty()) absl::StrAppend(&report.text, "report               ", run.page, "\n");
  if (run.published) {
    absl::StrAppend(&report.text, "published            ", ServedText(*run.published), " to ",
                    options.publish, "\n");
  }
  return report;
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
  command.Flag("--stream", &flags->stream,
               {"FOLDER|URL",
                "Trains on data that never ends: each file that appears in the folder, once, or "
                "the messages "
                "of kafka://HOST:PORT/TOPIC. In a run folder, continues that run where it is.",
                "--stream clicks/"});
  command.Switch("--once", &flags->once,
                 {"", "With --stream: ends once all data that is there is trained.", "--once"});
  command.Flag(
      "--publish", &flags->publish,
      {"DIR",
       "Without --servers: keeps a serving folder at the newest commit, as cistern publish "
       "does.",
       "--publish serving"});
  command.Choice("--durability", &flags->durability,
                 {"commit|none",
                  "Without --servers: whether to keep every commit in DIR/state, so that --resume "
                  "can continue from the last one after a crash. With --no-save-model nothing is "
                  "kept.",
                  "--durability none"});
  command.Flag(
      "--memory-limit-mb", &flags->model.fleet.memory_limit_mb,
      {"NUMBER",
       "Without --servers: memory of each embedded server for rows and for the pushes of "
       "a pass, in MiB. Rows that few passes need stay in the files of DIR/state. 0: every "
       "row is in memory.",
       "--memory-limit-mb 4096"});
  command.Flag("--recovery-limit", &flags->recovery_limit,
               {"SECONDS",
                "How long to wait for lost servers and workers if the servers keep their commits; "
                "the pass is then trained again. Several workers: also how long to wait for all of "
                "them to join.",
                "--recovery-limit 60"});
  command.Flag("--run-id", &flags->run_id,
               {"NAME",
                "Names the run in logs and figures, the same on all workers. By default worker 0 "
                "picks an id, which a resumed run keeps, and the others have none.",
                "--run-id nightly-2026-11-27"});
  command.List("--log", &flags->log, true,
               {"tensorboard,mlflow",
                "Also writes figures in the files of these programs: DIR/tensorboard, DIR/mlruns.",
                "--log tensorboard"});
  command.Flag("--log-dir", &flags->log_dir,
               {"DIR", "With --log: the folder of these files, in place of that of the run.",
                "--log-dir runs"});
  command.Flag("--trace", &flags->trace,
               {"FILE",
                "Also writes what this process did when, and what its calls to servers waited for: "
                "a file for ui.perfetto.dev. Several workers add -RANK to the name.",
                "--trace trace.json"});
  AddMetricsFlags(command, &flags->metrics);
}

absl::StatusOr<Report> RunTrain(const TrainFlags& flags, const app::WorkerRank& worker,
                                Console& console) {
  CatchInterrupts();  // before other threads start
  app::TrainRunOptions options = TrainOptionsOf(flags, worker);
  CISTERN_RETURN_IF_ERROR(ApplyData(flags, console, &options));
  CISTERN_ASSIGN_OR_RETURN(const model::ModelConfig config, ReadModelArgument(options.model));
  for (const std::string& note : config.notes) console.Say("note: " + note);
  if (flags.dry_run) return DryRun(config);
  if (options.out.empty()) {
    return WithFix(absl::InvalidArgumentError("--out is required"),
                   "name a folder for the run (--out runs/a), or add --dry-run");
  }
  CISTERN_ASSIGN_OR_RETURN(options.metrics, MetricsPlaceOf(flags.metrics));
  CISTERN_ASSIGN_OR_RETURN(
      const app::TrainRunResult run,
      TrainOnConsole(config, options, console, [](const Progress&) { return true; }));
  Report report = ReportOf(run, options);
  if (run.summary.interrupted() && !run.ended) {
    report.outcome = Interrupted(run.summary, flags, run.durable);
  }
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
      "--valid", &flags->table.options.valid,
      {"FILE",
       "Table, --more: evaluates on this table, which chooses the epoch. By default a tenth "
       "of the rows is held out: the latest ones if a column holds times.",
       "--valid valid.csv"});
  command.Flag(
      "--test", &flags->table.options.test,
      {"FILE", "With --valid: scores this table once, at the end. Without: the same as --valid.",
       "--test test.csv"});
  command.Does([flags](Console& console) { return RunTrain(*flags, app::WorkerRank{}, console); });
}

}  // namespace cistern::cli
