#include "app/report/run_report.h"

#include <memory>

#include "app/data/key_texts.h"
#include "app/model/model_source.h"
#include "common/io/new_file.h"
#include "worker/report/page.h"
#include "worker/train/model_study.h"

namespace cistern::app {
namespace {

// The model of a run, as run.json names it.
absl::StatusOr<ModelOptions> ModelOf(const report::RunView& run, uint64_t threads) {
  if (!run.record) {
    return WithFix(
        WithOptions(absl::InvalidArgumentError(absl::StrCat(
                        run.folder, ": a study needs ", report::kRunRecordFile,
                        ", which names the model file; an older version wrote this run")),
                    {"importance"}),
        "train again, or leave it out");
  }
  ModelOptions model;
  model.config = run.record->model;
  model.set = run.record->set;
  model.threads = threads;
  return model;
}

}  // namespace

absl::Status StudyRun(const StudyOptions& options, const JobCalls& calls) {
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const report::RunView run, report::ReadRun(files, options.run));
  CISTERN_ASSIGN_OR_RETURN(const ModelOptions model, ModelOf(run, options.threads));
  CISTERN_ASSIGN_OR_RETURN(model::ModelConfig config, ReadModelConfig(model));
  CISTERN_ASSIGN_OR_RETURN(const JobOptions job, JobOptionsOf(model));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<FleetSession> fleet,
                           OpenTrainedFleet(model, &config, options.run,
                                            [&](const std::string& line) { calls.Note(line); }));
  AmountCounter counter(calls, absl::StrCat("studying ", run.name), "runs");
  counter.Expect(1);
  CISTERN_ASSIGN_OR_RETURN(const report::ModelStudy study,
                           StudyModel(config, fleet->client(), options.data, options.samples, job));
  counter.Done();
  return WriteWhole(files, absl::StrCat(options.run, "/", report::kSlotStudyFile),
                    report::FormatModelStudy(study));
}

absl::StatusOr<std::string> WriteRunReport(const RunReportOptions& options, const JobCalls& calls) {
  if (options.out.empty() && options.runs.size() != 1) {
    return WithFix(
        WithOptions(absl::InvalidArgumentError("the page of several runs needs a name"), {"out"}),
        "name the page, such as report.html");
  }
  CISTERN_RETURN_IF_ERROR(WithOptions(NewFile::CheckNoDevice(options.out), {"out"}));
  const std::string out = options.out.empty() ? options.runs.front() + "/report.html" : options.out;
  LocalFileSystem files;
  CISTERN_RETURN_IF_ERROR(report::WriteReport(
      files, options.runs, out,
      [&](const report::RunView& run) { return TextsOfKeys(run, options.tables, calls); }));
  return out;
}

}  // namespace cistern::app
