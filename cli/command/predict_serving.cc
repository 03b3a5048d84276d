#include "cli/command/predict_serving.h"

#include <filesystem>

#include "absl/time/clock.h"
#include "app/run/run_recipe.h"
#include "cli/terminal/exit_code.h"
#include "common/io/new_file.h"
#include "serve/predictor/open_predictor.h"
#include "serve/predictor/predict_data.h"
#include "worker/data/format/prediction_lines.h"

namespace cistern {

absl::Status CheckServingFlags(const EvaluateFlags& flags) {
  if (flags.model_dir.empty() && flags.model.fleet.servers.empty() && flags.model.set.empty()) {
    return absl::OkStatus();
  }
  return WithFix(absl::InvalidArgumentError(absl::StrCat(
                     flags.model.config, " is a serving folder, which holds a whole model")),
                 "leave out --model, --servers and --set");
}

EvalSummary SummaryOf(const PredictedData& done) {
  EvalSummary summary;
  summary.samples = done.samples;
  summary.positives = done.positives;
  summary.unseen_keys = done.unseen;
  const MetricValue& auc = *FindValue(done.metrics, "auc");
  summary.auc = auc.value;
  summary.auc_note = auc.note;
  summary.logloss = FindValue(done.metrics, "logloss")->value.value_or(0);
  return summary;
}

bool IsServingFolder(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path + "/HEAD", error);
}

namespace {

// kInvalidArgument unless the data was converted as that of the model was.
absl::Status CheckServedData(const std::string& folder, const Predictor& predictor,
                             const std::vector<std::string>& data) {
  const std::shared_ptr<const OwnedEncoder> encoder = predictor.encoder();
  if (encoder == nullptr) return absl::OkStatus();
  const std::string path = absl::StrCat(folder, "/", predictor.version().folder, "/", kRecipeFile);
  return app::CheckDataRecipe({path, encoder->recipe()}, data);
}

}  // namespace

absl::StatusOr<Report> RunPredictServing(const EvaluateFlags& flags) {
  CISTERN_RETURN_IF_ERROR(CheckServingFlags(flags));
  const absl::Time start = absl::Now();
  const std::string& folder = flags.model.config;
  PredictorOptions options;
  options.threads = 1;
  options.poll_ms = 0;
  options.max_samples = std::max<uint64_t>(1, flags.batch);
  options.max_keys = SIZE_MAX;
  const auto opened = OpenPredictor(folder, options);
  if (!opened.ok()) return WithKind(opened.status(), ErrorKind::kBadCheckpoint);
  CISTERN_RETURN_IF_ERROR(CheckServedData(folder, **opened, flags.data));
  CISTERN_ASSIGN_OR_RETURN(const ModelConfig config, ReadServedConfig(folder));
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<NewFile> output,
                           NewFile::Create(files, flags.output));
  output->WillBeRead();
  std::string text;
  const auto visit = [&](absl::Span<const float> labels, absl::Span<const float> predictions) {
    text.clear();
    AppendPredictionLines(labels, predictions, config.data.label_dim, &text);
    return output->Append(text);
  };
  CISTERN_ASSIGN_OR_RETURN(const PredictedData done,
                           PredictData(**opened, config, flags.data, options.max_samples, visit));
  CISTERN_RETURN_IF_ERROR(output->Close());
  EvalSummary summary = SummaryOf(done);
  summary.seconds = absl::ToDoubleSeconds(absl::Now() - start);
  Report report = ReportOf(summary);
  report.json["output"] = flags.output;
  report.json["version"] = (*opened)->version().folder;
  absl::StrAppend(&report.text, "version      ", (*opened)->version().folder, "\noutput       ",
                  flags.output, "\n");
  return report;
}

}  // namespace cistern
