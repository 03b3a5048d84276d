#include "cli/command/evaluate_commands.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "cli/command/predict_serving.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/progress.h"
#include "worker/data/format/file_list.h"
#include "worker/data/format/output_file.h"
#include "worker/train/metric_json.h"

namespace cistern {
namespace {

void AddSharedFlags(Command& command, EvaluateFlags* flags, bool data_required) {
  AddModelFlags(command, &flags->model);
  command.Flag("--model", &flags->model_dir,
               {"DIR",
                "The trained model: the --out folder of a training run, or the model folder in it. "
                "With --servers it is loaded only if the servers hold no model.",
                "--model runs/deepfm"});
  command.List("--data", &flags->data, true,
               {"FILE,...",
                data_required ? "File lists or data files, read in this order; may be repeated."
                              : "File lists or data files; may be repeated. By default the "
                                "model's eval_source.",
                "--data test.txt", data_required});
}

}  // namespace

Report ReportOf(const EvalSummary& summary) {
  Report report;
  report.json["samples"] = summary.samples;
  report.json["positives"] = summary.positives;
  report.json["auc"] = summary.auc ? nlohmann::ordered_json(*summary.auc) : nullptr;
  if (!summary.auc) report.json["auc_note"] = summary.auc_note;
  report.json["logloss"] = summary.logloss;
  PutMetrics(summary.metrics, &report.json);
  for (const MetricValue& metric : summary.metrics) {
    if (!metric.value) report.json[metric.name + "_note"] = metric.note;
  }
  report.json["unseen_keys"] = summary.unseen_keys;
  report.json["seconds"] = summary.seconds;
  report.text = summary.auc ? absl::StrFormat("auc          %.6f\n", *summary.auc)
                            : absl::StrCat("auc          none: ", summary.auc_note, "\n");
  absl::StrAppendFormat(&report.text, "log loss     %.6f\n", summary.logloss);
  absl::StrAppend(&report.text, MetricLines(summary.metrics, 13), "samples      ", summary.samples,
                  " (", summary.positives, " positive)\n", "unseen keys  ", summary.unseen_keys,
                  "\n", "time         ", DurationText(summary.seconds), "\n");
  return report;
}

absl::StatusOr<Report> RunEvaluate(const EvaluateFlags& flags, Console& console) {
  CISTERN_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(flags.model));
  CISTERN_ASSIGN_OR_RETURN(const JobOptions options, JobOptionsOf(flags.model));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<FleetSession> fleet,
                           OpenTrainedFleet(flags.model, config, flags.model_dir, console));
  const auto summary = Evaluate(config, fleet->client(), flags.data, options);
  if (!summary.ok()) return WithFleetFix(summary.status(), flags.model.fleet);
  return ReportOf(*summary);
}

// Predicts into a temporary file, which is copied to standard output once it is complete. What a
// person reads goes to standard error.
absl::StatusOr<Report> PredictToStandardOutput(EvaluateFlags flags, Console& console) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  flags.output = folder / absl::StrCat("cistern-predict-", getpid(), ".tsv");
  const auto removed = absl::MakeCleanup([&] { std::filesystem::remove(flags.output, error); });
  CISTERN_ASSIGN_OR_RETURN(Report report, RunPredict(flags, console));
  std::ifstream lines(flags.output, std::ios::binary);
  if (lines.peek() != std::ifstream::traits_type::eof()) std::cout << lines.rdbuf() << std::flush;
  report.json["output"] = "-";
  for (const absl::string_view line : absl::StrSplit(report.text, '\n', absl::SkipEmpty())) {
    if (!absl::StartsWith(line, "output ")) console.Say(std::string(line));
  }
  report.text.clear();
  return report;
}

absl::StatusOr<Report> RunPredict(const EvaluateFlags& flags, Console& console) {
  if (flags.output == "-") return PredictToStandardOutput(flags, console);
  std::vector<std::string> read = {flags.model.config};
  for (const std::string& source : flags.data) {
    const std::vector<std::string> files = FilesOfSource(source);
    read.insert(read.end(), files.begin(), files.end());
  }
  CISTERN_RETURN_IF_ERROR(AddContext(OutputFile::Check(flags.output, read), "--output"));
  if (IsServingFolder(flags.model.config)) return RunPredictServing(flags);
  CISTERN_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(flags.model));
  CISTERN_ASSIGN_OR_RETURN(const JobOptions options, JobOptionsOf(flags.model));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<FleetSession> fleet,
                           OpenTrainedFleet(flags.model, config, flags.model_dir, console));
  const auto summary = Predict(config, fleet->client(), flags.data, flags.output, options);
  if (!summary.ok()) return WithFleetFix(summary.status(), flags.model.fleet);
  Report report = ReportOf(*summary);
  report.json["output"] = flags.output;
  absl::StrAppend(&report.text, "output       ", flags.output, "\n");
  return report;
}

void AddEvaluateCommand(Command& root) {
  auto flags = std::make_shared<EvaluateFlags>();
  Command& command =
      root.Add("eval", "Computes AUC, log loss and the model's eval_metrics on data.",
               "cistern eval deepfm.json --model runs/deepfm --data test.txt");
  AddSharedFlags(command, flags.get(), false);
  command.Does([flags](Console& console) { return RunEvaluate(*flags, console); });
}

void AddPredictCommand(Command& root) {
  auto flags = std::make_shared<EvaluateFlags>();
  Command& command = root.Add(
      "predict", "Writes one line label<TAB>prediction per sample, in input order.",
      "cistern predict deepfm.json --model runs/deepfm --data test.txt --output predictions.tsv");
  AddSharedFlags(command, flags.get(), true);
  command.Flag("--output", &flags->output,
               {"FILE", "Output file; appears when all lines are written. -: standard output.",
                "--output predictions.tsv", kRequired});
  command.Flag("--batch", &flags->batch,
               {"INT", "With a serving folder as MODEL: samples of one request.", "--batch 100"});
  command.Does([flags](Console& console) { return RunPredict(*flags, console); });
}

}  // namespace cistern
