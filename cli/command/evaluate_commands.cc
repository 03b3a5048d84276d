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
#include "app/train/train_json.h"
#include "cli/command/shared_flags.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/progress.h"

namespace cistern::cli {
namespace {

void AddSharedFlags(Command& command, app::PredictOptions* flags, const std::string& data_text) {
  AddModelFlags(command, &flags->model);
  command.Flag("--model", &flags->model_dir,
               {"DIR",
                "The trained model: the --out folder of a training run, or the model folder in it. "
                "With --servers it is loaded only if the servers hold no model.",
                "--model runs/deepfm"});
  command.List("--data", &flags->data, true, {"FILE,...", data_text, "--data test.txt"});
  command.List("--add-column", &flags->add_columns, true,
               {"COLUMN,...",
                "Of tables: columns that the model reads and that are not there; they are empty in "
                "all rows.",
                "--add-column brand"});
}

// Either data files or text.
absl::Status CheckInput(const app::PredictOptions& flags) {
  const bool has_text = !flags.text.files.empty();
  if (has_text && !flags.data.empty()) {
    return WithFix(absl::InvalidArgumentError("--data and --input exclude each other"),
                   "--data names converted data sets, --input text: give one of them");
  }
  if (!has_text && flags.data.empty()) {
    return WithFix(absl::InvalidArgumentError("--data is required"),
                   "name a data set with --data, or rows of text with --input");
  }
  return absl::OkStatus();
}

// Adds the commands that suit a table in place of the model.
absl::Status WithModelFix(const absl::Status& status, const std::string& model) {
  if (KindOf(status) != ErrorKind::kTable) return status;
  return WithFix(status, absl::StrCat("cistern predict RUN --input ", model,
                                      " --output FILE predicts its rows; cistern train ", model,
                                      " --out RUN makes a model of it"));
}

}  // namespace

Report ReportOf(const EvalSummary& summary) {
  Report report;
  report.json = app::JsonOf(summary);
  report.text = summary.auc ? absl::StrFormat("auc          %.6f\n", *summary.auc)
                            : absl::StrCat("auc          none: ", summary.auc_note, "\n");
  absl::StrAppendFormat(&report.text, "log loss     %.6f\n", summary.logloss);
  absl::StrAppend(&report.text, MetricLines(summary.metrics, 13), "samples      ", summary.samples,
                  " (", summary.positives, " positive)\n", "unseen keys  ", summary.unseen_keys,
                  "\n", "time         ", DurationText(summary.seconds), "\n");
  return report;
}

namespace {

Report ReportOf(const app::PredictResult& done, const std::string& output) {
  const EvalSummary& summary = done.summary;
  Report report;
  if (!done.has_rows) {
    report.json["samples"] = 0;
    report.text = "samples      0\n";
  } else if (done.labeled) {
    report = cli::ReportOf(summary);
  } else {
    report.json["samples"] = summary.samples;
    report.json["unseen_keys"] = summary.unseen_keys;
    report.json["seconds"] = summary.seconds;
    report.text = absl::StrCat("samples      ", summary.samples, " (without labels)\nunseen keys  ",
                               summary.unseen_keys, "\n");
  }
  report.json["output"] = output;
  if (!done.version.empty()) {
    report.json["version"] = done.version;
    absl::StrAppend(&report.text, "version      ", done.version, "\n");
  }
  absl::StrAppend(&report.text, "output       ", output, "\n");
  return report;
}

}  // namespace

absl::StatusOr<Report> RunEvaluate(const app::PredictOptions& flags, Console& console) {
  const absl::StatusOr<EvalSummary> summary = app::EvaluateModel(flags, NotesOn(console));
  if (!summary.ok()) return WithModelFix(summary.status(), flags.model.config);
  return ReportOf(*summary);
}

// Predicts into a temporary file, which is copied to standard output once it is complete. What a
// person reads goes to standard error.
absl::StatusOr<Report> PredictToStandardOutput(app::PredictOptions flags, Console& console) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  flags.output = folder / absl::StrCat("cistern-predict-", getpid(), ".csv");
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

absl::StatusOr<Report> RunPredict(const app::PredictOptions& flags, Console& console) {
  if (flags.output == "-") return PredictToStandardOutput(flags, console);
  CISTERN_RETURN_IF_ERROR(CheckInput(flags));
  const absl::StatusOr<app::PredictResult> done = app::PredictFiles(flags, NotesOn(console));
  if (!done.ok()) return WithModelFix(done.status(), flags.model.config);
  return ReportOf(*done, flags.output);
}

void AddEvaluateCommand(Command& root) {
  auto flags = std::make_shared<app::PredictOptions>();
  Command& command =
      root.Add("eval", "Computes AUC, log loss and the model's eval_metrics on data.",
               "cistern eval deepfm.json --model runs/deepfm --data test.txt");
  AddSharedFlags(command, flags.get(),
                 "File lists, data files, or rows of text with labels (*.csv, *.tsv ...); may be "
                 "repeated. By default the model's eval_source.");
  command.Does([flags](Console& console) { return RunEvaluate(*flags, console); });
}

void AddTextFlags(Command& command, app::PredictOptions* flags, std::string* delimiter) {
  command.List(
      "--input", &flags->text.files, true,
      {"FILE,...",
       "Rows of text, with or without labels, instead of --data: CSV or TSV, encoded by the "
       "recipe of the model; - is standard input.",
       "--input test.csv"});
  command.List(
      "--keep", &flags->text.keep, true,
      {"COLUMN,...", "With --input: columns to write beside the prediction.", "--keep id,time"});
  command.List("--columns", &flags->text.columns, true,
               {"NAME,...", "With --input: column names of a file without a header line.",
                "--columns id,age,C1..C26"});
  command.Flag("--delimiter", delimiter,
               {"CHAR", "With --input: field separator; by default that of the training data.",
                "--delimiter ';'"});
  command.Flag("--recipe", &flags->recipe,
               {"FILE|DIR", "With --input: the recipe to use; by default that of the model.",
                "--recipe data/train"});
}

void AddPredictCommand(Command& root) {
  auto flags = std::make_shared<app::PredictOptions>();
  auto delimiter = std::make_shared<std::string>();
  Command& command =
      root.Add("predict",
               "Writes a prediction per sample, in input order: label<TAB>prediction for a data "
               "set, a table "
               "for rows of text.",
               "cistern predict runs/deepfm --input test.csv --keep id --output predictions.csv");
  AddSharedFlags(
      command, flags.get(),
      "File lists, data files, or rows of text (*.csv, *.parquet ...), read in this order; may be "
      "repeated.");
  AddTextFlags(command, flags.get(), delimiter.get());
  command.Flag("--output", &flags->output,
               {"FILE", "Output file; appears when all lines are written. -: standard output.",
                "--output predictions.tsv", kRequired});
  command.Flag("--batch", &flags->batch,
               {"INT", "With a serving folder as MODEL: samples of one request.", "--batch 100"});
  command.Does([flags, delimiter](Console& console) -> absl::StatusOr<Report> {
    CISTERN_ASSIGN_OR_RETURN(flags->text.delimiter, CharacterOf("--delimiter", *delimiter));
    return RunPredict(*flags, console);
  });
}

}  // namespace cistern::cli
