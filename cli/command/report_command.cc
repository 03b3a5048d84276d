#include "cli/command/commands.h"

#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "app/report/run_report.h"
#include "cli/command/job_console.h"

namespace cistern::cli {
namespace {

struct ReportFlags {
  app::RunReportOptions page;
  bool importance = false;
  app::StudyOptions study;
};

absl::Status CheckFlags(const ReportFlags& flags) {
  if (flags.page.out.empty() && flags.page.runs.size() > 1) {
    return WithFix(absl::InvalidArgumentError("--out is required for several runs"),
                   "name the page: --out report.html");
  }
  for (const std::string& run : flags.page.runs) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(run, error)) continue;
    return WithFix(absl::InvalidArgumentError(absl::StrCat(run, ": is a file, not a run")),
                   "name the --out folder of a training run");
  }
  return absl::OkStatus();
}

absl::StatusOr<Report> RunReport(const ReportFlags& flags, Console& console) {
  CISTERN_RETURN_IF_ERROR(CheckFlags(flags));
  for (const std::string& run : flags.page.runs) {
    if (!flags.importance) break;
    app::StudyOptions study = flags.study;
    study.run = run;
    CISTERN_RETURN_IF_ERROR(app::StudyRun(study, JobConsole(console).calls()));
  }
  const absl::StatusOr<std::string> out = app::WriteRunReport(flags.page, RowCallsOn(console));
  console.Update("");
  if (absl::IsNotFound(out.status())) {
    return WithFix(WithCode(out.status(), absl::StatusCode::kInvalidArgument),
                   "name the --out folder of a training run");
  }
  CISTERN_RETURN_IF_ERROR(out.status());
  Report report;
  report.json["runs"] = flags.page.runs;
  report.json["report"] = *out;
  report.text = absl::StrCat("report  ", *out, "\n");
  return report;
}

}  // namespace

void AddReportCommand(Command& root) {
  auto flags = std::make_shared<ReportFlags>();
  Command& command =
      root.Add("report", "Writes one HTML page about training runs: curves, calibration, slots.",
               "cistern report runs/deepfm runs/dcn --out compare.html");
  command.Arguments("RUN", &flags->page.runs,
                    {"DIR", "The --out folders of training runs.", "runs/deepfm", kRequired});
  command.Flag(
      "--out", &flags->page.out,
      {"FILE", "The page. By default RUN/report.html, if there is one RUN.", "--out compare.html"});
  command.Switch("--importance", &flags->importance,
                 {"",
                  "First computes what each slot and column contributes, and writes it to "
                  "RUN/importance.json. Needs the model file and the evaluation data.",
                  "--importance"});
  command.Flag("--samples", &flags->study.samples,
               {"INT", "With --importance: how many samples to read.", "--samples 20000"});
  command.List("--data", &flags->study.data, true,
               {"FILE,...", "With --importance: data instead of the model's eval_source.",
                "--data test.txt"});
  command.List("--input", &flags->page.tables, true,
               {"FILE,...",
                "Tables in which the texts of the worst-calibrated values are searched: keys are "
                "hashes of texts.",
                "--input train.csv"});
  command.Flag("--threads", &flags->study.threads, ThreadsText("Number of compute threads"));
  command.Does([flags](Console& console) { return RunReport(*flags, console); });
}

}  // namespace cistern::cli
