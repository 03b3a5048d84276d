#include "cli/train_command.h"

#include <filesystem>
#include <memory>

#include "absl/strings/str_format.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/progress.h"

namespace cistern {
namespace {

absl::Status CheckOut(const TrainFlags& flags) {
  std::error_code error;
  if (flags.overwrite || !std::filesystem::exists(flags.out + "/model", error)) {
    return absl::OkStatus();
  }
  return WithFix(absl::InvalidArgumentError(
                     absl::StrCat("--out ", flags.out, ": holds a trained model already")),
                 "name another folder, or add --overwrite to replace what is there");
}

// Seconds, rates and counts stay numbers; what does not exist is null.
nlohmann::ordered_json JsonOf(const TrainSummary& summary) {
  nlohmann::ordered_json json;
  json["iterations"] = summary.iterations;
  json["samples"] = summary.samples;
  json["passes"] = summary.passes;
  json["epochs"] = summary.epochs;
  json["rows"] = summary.rows;
  json["seconds"] = summary.seconds;
  json["samples_per_second"] = summary.samples_per_second;
  json["loss"] = summary.loss;
  json["auc"] = summary.auc ? nlohmann::ordered_json(*summary.auc) : nullptr;
  json["logloss"] = summary.logloss ? nlohmann::ordered_json(*summary.logloss) : nullptr;
  json["stopped_by"] = summary.stopped_by;
  json["interrupted"] = summary.interrupted;
  json["model"] = summary.model_dir;
  return json;
}

std::string TextOf(const TrainSummary& summary) {
  std::string text = absl::StrFormat(
      "trained %d samples (%d iterations, %d passes) in %s, %s samples/s; stopped by %s\n",
      summary.samples, summary.iterations, summary.passes, DurationText(summary.seconds),
      CountText(summary.samples_per_second), summary.stopped_by);
  absl::StrAppendFormat(&text, "loss      %.6f\n", summary.loss);
  if (summary.auc) absl::StrAppendFormat(&text, "auc       %.6f\n", *summary.auc);
  if (summary.logloss) absl::StrAppendFormat(&text, "log loss  %.6f\n", *summary.logloss);
  absl::StrAppend(&text, "rows      ", summary.rows, "\n");
  if (!summary.model_dir.empty()) absl::StrAppend(&text, "model     ", summary.model_dir, "\n");
  return text;
}

absl::Status Interrupted(const TrainSummary& summary, const TrainFlags& flags) {
  std::string where = "the last pass is committed";
  if (!summary.model_dir.empty()) absl::StrAppend(&where, " and saved in ", summary.model_dir);
  const bool lost = summary.model_dir.empty() && flags.model.fleet.servers.empty();
  if (lost) where = "nothing was saved (--no-save-model)";
  return absl::CancelledError(
      absl::StrCat("interrupted after iteration ", summary.iterations, "; ", where));
}

}  // namespace

void AddTrainFlags(Command& command, TrainFlags* flags) {
  AddModelFlags(command, &flags->model);
  command.Flag("--out", &flags->out,
               {"DIR", "Folder of the run: metrics.jsonl and model/. Created.", "--out runs/deepfm",
                kRequired});
  command.Switch("--no-save-model", &flags->no_save_model,
                 {"", "Writes metrics but no model.", "--no-save-model"});
  command.Switch("--overwrite", &flags->overwrite,
                 {"", "Replaces the model that the folder holds.", "--overwrite"});
}

absl::StatusOr<Report> RunTrain(const TrainFlags& flags, const WorkerRank& worker,
                                Console& console) {
  const std::atomic<bool>* interrupted = CatchInterrupts();
  CISTERN_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(flags.model));
  for (const std::string& note : config.notes) console.Say("note: " + note);
  CISTERN_RETURN_IF_ERROR(CheckOut(flags));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<FleetSession> fleet,
                           FleetSession::Open(flags.model.fleet));
  if (const PassId pass = fleet->client().committed_pass(); pass > 0) {
    console.Say(absl::StrCat("note: the servers hold pass ", pass, "; training goes on from it"));
  }
  ProgressPrinter printer(&console);
  JobOptions options = JobOptionsOf(flags.model);
  options.out_dir = flags.out;
  options.save_model = !flags.no_save_model;
  options.interrupted = interrupted;
  options.progress = [&printer](const Progress& progress) { printer.Show(progress); };
  options.rank = worker.rank;
  options.world_size = worker.world_size;
  absl::StatusOr<TrainSummary> summary = Train(config, fleet->client(), options);
  if (!summary.ok()) return WithFleetFix(summary.status(), flags.model.fleet);
  printer.Finish();
  // Of all passes, not of the last one.
  CISTERN_ASSIGN_OR_RETURN(summary->rows, RowsOn(fleet->client()));
  Report report{JsonOf(*summary), TextOf(*summary), absl::OkStatus()};
  if (summary->interrupted) report.outcome = Interrupted(*summary, flags);
  return report;
}

void AddTrainCommand(Command& root) {
  auto flags = std::make_shared<TrainFlags>();
  Command& command = root.Add(
      "train", "Trains a model: with servers inside this process, or with a fleet (--servers).",
      "cistern train deepfm.json --out runs/deepfm --set solver.batchsize=4096");
  AddTrainFlags(command, flags.get());
  command.Does([flags](Console& console) { return RunTrain(*flags, WorkerRank{}, console); });
}

}  // namespace cistern
