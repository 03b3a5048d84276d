#include "app/predict/predict_serving.h"

#include <algorithm>
#include <filesystem>

#include "absl/time/clock.h"
#include "app/run/run_recipe.h"
#include "common/io/new_file.h"
#include "serve/predictor/open_predictor.h"
#include "serve/predictor/predict_data.h"

namespace cistern::app {

absl::StatusOr<std::unique_ptr<serve::Predictor>> OpenServed(const PredictOptions& options) {
  const std::string& folder = options.model.config;
  if (!options.model_dir.empty() || !options.model.fleet.servers.empty() ||
      !options.model.set.empty()) {
    return WithFix(WithOptions(absl::InvalidArgumentError(absl::StrCat(
                                   folder, " is a serving folder, which holds a whole model")),
                               {"model", "servers", "set"}),
                   "name no other model and change nothing of it");
  }
  serve::PredictorOptions of_predictor;
  of_predictor.threads = 1;
  of_predictor.poll_ms = 0;
  of_predictor.max_samples = std::max<uint64_t>(1, options.batch);
  of_predictor.max_keys = SIZE_MAX;
  auto opened = serve::OpenPredictor(folder, of_predictor);
  if (!opened.ok()) return WithKind(opened.status(), ErrorKind::kBadCheckpoint);
  return opened;
}

EvalSummary SummaryOf(const serve::PredictedData& done) {
  EvalSummary summary;
  summary.samples = done.samples;
  summary.positives = done.positives;
  summary.unseen_keys = done.unseen;
  const model::MetricValue& auc = *model::FindValue(done.metrics, "auc");
  summary.auc = auc.value;
  summary.auc_note = auc.note;
  summary.logloss = model::FindValue(done.metrics, "logloss")->value.value_or(0);
  return summary;
}

bool IsServingFolder(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path + "/HEAD", error);
}

namespace {

// kInvalidArgument unless the data was converted as that of the model was.
absl::Status CheckServedData(const std::string& folder, const serve::Predictor& predictor,
                             const std::vector<std::string>& data) {
  const std::shared_ptr<const data::OwnedEncoder> encoder = predictor.encoder();
  if (encoder == nullptr) return absl::OkStatus();
  const std::string path =
      absl::StrCat(folder, "/", predictor.version().folder, "/", data::kRecipeFile);
  return CheckDataRecipe({path, encoder->recipe()}, data);
}

}  // namespace

absl::StatusOr<PredictResult> PredictServing(serve::Predictor& predictor,
                                             const PredictOptions& options,
                                             const OnPredictions& visit) {
  const absl::Time start = absl::Now();
  const std::string& folder = options.model.config;
  CISTERN_RETURN_IF_ERROR(CheckServedData(folder, predictor, options.data));
  CISTERN_ASSIGN_OR_RETURN(const model::ModelConfig config, serve::ReadServedConfig(folder));
  LocalFileSystem files;
  std::unique_ptr<NewFile> output;
  if (!options.output.empty()) {
    CISTERN_ASSIGN_OR_RETURN(output, NewFile::Create(files, options.output));
    output->WillBeRead();
  }
  CISTERN_ASSIGN_OR_RETURN(
      const serve::PredictedData done,
      serve::PredictData(predictor, config, options.data, predictor.max_samples(),
                         WriteLinesTo(output, config.data.label_dim, visit)));
  if (output != nullptr) CISTERN_RETURN_IF_ERROR(output->Close());
  PredictResult result;
  result.summary = SummaryOf(done);
  result.summary.seconds = absl::ToDoubleSeconds(absl::Now() - start);
  result.version = done.version.folder;
  result.commit = done.version.commit;
  return result;
}

}  // namespace cistern::app
