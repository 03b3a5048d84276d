#include "cli/command/report_command.h"

#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "app/data/key_texts.h"
#include "app/model/model_source.h"
#include "cli/command/job_console.h"
#include "cli/command/shared_flags.h"
#include "cli/terminal/activity.h"
#include "cli/terminal/exit_code.h"
#include "common/io/new_file.h"
#include "worker/report/page.h"
#include "worker/train/model_study.h"

namespace cistern {
namespace {

struct ReportFlags {
  std::vector<std::string> runs;
  std::string out;
  bool importance = false;
  uint64_t samples = 100000;
  std::vector<std::string> data, input;
  uint64_t threads = 0;
};

// The model of a run, as run.json names it.
absl::StatusOr<app::ModelOptions> ModelOf(const RunView& run, const ReportFlags& flags) {
  if (!run.record) {
    return WithFix(absl::InvalidArgumentError(absl::StrCat(
                       run.folder, ": --importance needs ", kRunRecordFile,
                       ", which names the model file; an older version wrote this run")),
                   "train again, or leave out --importance");
  }
  app::ModelOptions model;
  model.config = run.record->model;
  model.set = run.record->set;
  model.threads = flags.threads;
  return model;
}

// Studies the model of a run and writes RUN/importance.json.
absl::Status Study(const std::string& folder, const ReportFlags& flags, Console& console) {
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const RunView run, ReadRun(files, folder));
  CISTERN_ASSIGN_OR_RETURN(const app::ModelOptions model, ModelOf(run, flags));
  CISTERN_ASSIGN_OR_RETURN(ModelConfig config, ReadModelArgument(model));
  CISTERN_ASSIGN_OR_RETURN(const JobOptions options, app::JobOptionsOf(model));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<app::FleetSession> fleet,
                           app::OpenTrainedFleet(model, &config, folder, NotesOn(console)));
  ModelStudy study;
  {
    Activity activity(&console, absl::StrCat("studying ", run.name), "runs", 1);
    CISTERN_ASSIGN_OR_RETURN(
        study, StudyModel(config, fleet->client(), flags.data, flags.samples, options));
  }
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<NewFile> file,
                           NewFile::Create(files, absl::StrCat(folder, "/", kSlotStudyFile)));
  CISTERN_RETURN_IF_ERROR(file->Append(FormatModelStudy(study)));
  return file->Close();
}

absl::StatusOr<Report> RunReport(const ReportFlags& flags, Console& console) {
  if (flags.out.empty() && flags.runs.size() > 1) {
    return WithFix(absl::InvalidArgumentError("--out is required for several runs"),
                   "name the page: --out report.html");
  }
  for (const std::string& run : flags.runs) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(run, error)) continue;
    return WithFix(absl::InvalidArgumentError(absl::StrCat(run, ": is a file, not a run")),
                   "name the --out folder of a training run");
  }
  CISTERN_RETURN_IF_ERROR(AddContext(NewFile::CheckNoDevice(flags.out), "--out"));
  if (flags.importance) {
    for (const std::string& run : flags.runs) {
      CISTERN_RETURN_IF_ERROR(Study(run, flags, console));
    }
  }
  const std::string out = flags.out.empty() ? flags.runs.front() + "/report.html" : flags.out;
  LocalFileSystem files;
  const absl::Status written = WriteReport(files, flags.runs, out, [&](const RunView& run) {
    const absl::StatusOr<KeyTexts> texts = app::TextsOfKeys(run, flags.input, RowCallsOn(console));
    console.Update("");
    return texts;
  });
  if (absl::IsNotFound(written)) {
    return WithFix(MissingIsUsage(written), "name the --out folder of a training run");
  }
  CISTERN_RETURN_IF_ERROR(written);
  Report report;
  report.json["runs"] = flags.runs;
  report.json["report"] = out;
  report.text = absl::StrCat("report  ", out, "\n");
  return report;
}

}  // namespace

void AddReportCommand(Command& root) {
  auto flags = std::make_shared<ReportFlags>();
  Command& command =
      root.Add("report", "Writes one HTML page about training runs: curves, calibration, slots.",
               "cistern report runs/deepfm runs/dcn --out compare.html");
  command.Arguments("RUN", &flags->runs,
                    {"DIR", "The --out folders of training runs.", "runs/deepfm", kRequired});
  command.Flag(
      "--out", &flags->out,
      {"FILE", "The page. By default RUN/report.html, if there is one RUN.", "--out compare.html"});
  command.Switch("--importance", &flags->importance,
                 {"",
                  "First computes what each slot and column contributes, and writes it to "
                  "RUN/importance.json. Needs the model file and the evaluation data.",
                  "--importance"});
  command.Flag("--samples", &flags->samples,
               {"INT", "With --importance: how many samples to read.", "--samples 20000"});
  command.List("--data", &flags->data, true,
               {"FILE,...", "With --importance: data instead of the model's eval_source.",
                "--data test.txt"});
  command.List("--input", &flags->input, true,
               {"FILE,...",
                "Tables in which the texts of the worst-calibrated values are searched: keys are "
                "hashes of texts.",
                "--input train.csv"});
  command.Flag("--threads", &flags->threads, ThreadsText("Number of compute threads"));
  command.Does([flags](Console& console) { return RunReport(*flags, console); });
}

}  // namespace cistern
