#include "cli/command/predict_serving.h"

#include <filesystem>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "cli/terminal/exit_code.h"
#include "serve/predictor/open_predictor.h"
#include "serve/predictor/predict_data.h"
#include "worker/data/format/label_check.h"
#include "worker/data/format/output_file.h"
#include "worker/model/metric/metric_set.h"

namespace cistern {
namespace {

absl::Status CheckFlags(const EvaluateFlags& flags) {
  if (flags.model_dir.empty() && flags.model.fleet.servers.empty() && flags.model.set.empty()) {
    return absl::OkStatus();
  }
  return WithFix(absl::InvalidArgumentError(absl::StrCat(
                     flags.model.config, " is a serving folder, which holds a whole model")),
                 "leave out --model, --servers and --set");
}

}  // namespace

bool IsServingFolder(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path + "/HEAD", error);
}

absl::StatusOr<Report> RunPredictServing(const EvaluateFlags& flags) {
  CISTERN_RETURN_IF_ERROR(CheckFlags(flags));
  const absl::Time start = absl::Now();
  const std::string& folder = flags.model.config;
  PredictorOptions options;
  options.threads = 1;
  options.poll_ms = 0;
  options.max_samples = std::max<uint64_t>(1, flags.batch);
  options.max_keys = SIZE_MAX;
  const auto opened = OpenPredictor(folder, options);
  if (!opened.ok()) return FromCheckpoint(opened.status());
  CISTERN_ASSIGN_OR_RETURN(const ModelConfig config, ReadServedConfig(folder));
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> output,
                           OutputFile::Create(files, flags.output));
  MetricOptions metric_options;
  metric_options.label_dim = config.data.label_dim;
  metric_options.masked_below = kNoLabelBelow;
  MetricSet metrics(metric_options);
  uint64_t positives = 0;
  const size_t labels = config.data.label_dim;
  const auto visit = [&](absl::Span<const float> label,
                         absl::Span<const float> predictions) -> absl::Status {
    std::string text;
    for (size_t i = 0; i < predictions.size(); ++i) {
      const char end = (i + 1) % labels == 0 ? '\n' : '\t';
      absl::StrAppendFormat(&text, "%g\t%.9g%c", label[i], predictions[i], end);
      positives += label[i] > 0.5f ? 1 : 0;
    }
    CISTERN_RETURN_IF_ERROR(metrics.Add(label, predictions));
    return output->Append(text);
  };
  CISTERN_ASSIGN_OR_RETURN(const PredictedData done,
                           PredictData(**opened, config, flags.data, options.max_samples, visit));
  CISTERN_RETURN_IF_ERROR(output->Close());
  EvalSummary summary;
  summary.samples = done.samples;
  summary.positives = positives;
  summary.unseen_keys = done.unseen;
  summary.seconds = absl::ToDoubleSeconds(absl::Now() - start);
  for (const MetricValue& value : metrics.Values()) {
    if (value.name == "auc") {
      summary.auc = value.value;
      summary.auc_note = value.note;
    } else if (value.name == "logloss") {
      summary.logloss = value.value.value_or(0);
    }
  }
  Report report = ReportOf(summary);
  report.json["output"] = flags.output;
  report.json["version"] = (*opened)->version().folder;
  absl::StrAppend(&report.text, "version      ", (*opened)->version().folder, "\noutput       ",
                  flags.output, "\n");
  return report;
}

}  // namespace cistern
