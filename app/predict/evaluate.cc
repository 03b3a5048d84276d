#include "app/predict/evaluate.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>

#include "app/data/table_file.h"
#include "app/predict/predict_text.h"
#include "app/run/run_folder.h"
#include "app/run/run_recipe.h"
#include "worker/model/config/graph_difference.h"
#include "worker/model/layer/layer_list.h"

namespace cistern::app {
namespace {

// Where the model tells how its data was converted, and which graph was trained; empty: nowhere.
const std::string& PlaceOf(const EvaluateOptions& options) {
  return options.model_dir.empty() ? options.recipe : options.model_dir;
}

// The data must have been converted as the training data of the model was.
absl::Status CheckData(const EvaluateOptions& options, const model::ModelConfig& config) {
  if (PlaceOf(options).empty()) return absl::OkStatus();
  CISTERN_ASSIGN_OR_RETURN(const std::optional<data::FoundRecipe> recipe,
                           RecipeOfModel(PlaceOf(options)));
  if (!recipe) return absl::OkStatus();
  std::vector<std::string> sources = options.data;
  if (sources.empty() && !config.data.eval_source.empty()) sources = {config.data.eval_source};
  return CheckDataRecipe(*recipe, sources);
}

using Apply = std::function<absl::StatusOr<EvalSummary>(
    const model::ModelConfig& config, ParameterClient& client, const JobOptions& job)>;

// Opens the trained model, and applies it.
absl::StatusOr<EvalSummary> WithModel(EvaluateOptions* options, const OnNote& note,
                                      const Apply& apply) {
  CISTERN_RETURN_IF_ERROR(TakeRun(options));
  CISTERN_ASSIGN_OR_RETURN(model::ModelConfig config, ReadModelConfig(options->model));
  CISTERN_RETURN_IF_ERROR(CheckData(*options, config));
  CISTERN_ASSIGN_OR_RETURN(const JobOptions job, JobOptionsOf(options->model));
  CISTERN_RETURN_IF_ERROR(CheckGraph(*options, config));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<FleetSession> fleet,
                           OpenTrainedFleet(options->model, &config, options->model_dir, note));
  absl::StatusOr<EvalSummary> summary = apply(config, fleet->client(), job);
  if (!summary.ok()) return WithFleetFix(summary.status(), options->model.fleet);
  return summary;
}

// Rows without labels have no metrics.
absl::StatusOr<EvalSummary> EvaluateText(const PredictOptions& options, const OnNote& note) {
  CISTERN_ASSIGN_OR_RETURN(const PredictResult result, PredictFiles(options, note));
  if (result.has_rows && result.labeled) return result.summary;
  return WithFix(
      WithOptions(
          absl::InvalidArgumentError(absl::StrCat(
              options.text.files.front(), result.has_rows ? " has no labels" : " holds no row",
              ", so there is nothing to evaluate")),
          {"data"}),
      "name rows with the label column of the training, or rename the one that is meant; rows "
      "without labels can be predicted");
}

}  // namespace

absl::Status TakeRun(EvaluateOptions* options) {
  const std::string folder = options->model.config;
  std::error_code error;
  if (std::filesystem::is_regular_file(folder, error) && IsTable(folder)) {
    return WithKind(absl::InvalidArgumentError(
                        absl::StrCat(folder, " is a table, not a trained model or a model file")),
                    ErrorKind::kTable);
  }
  CISTERN_RETURN_IF_ERROR(ResolveRunFolder(&options->model, &options->model_dir));
  // RUN/model.json without the model that it was trained to: that of the run.
  const std::filesystem::path file(options->model.config);
  if (options->model_dir.empty() && options->model.fleet.servers.empty() &&
      file.filename() == kRunModelFile && IsRunFolder(file.parent_path())) {
    options->model_dir = file.parent_path();
  }
  // With servers, the rows come from elsewhere.
  if (options->recipe.empty() && options->model_dir.empty() && IsRunFolder(folder))
    options->recipe = folder;
  return absl::OkStatus();
}

absl::Status CheckGraph(const EvaluateOptions& options, const model::ModelConfig& config) {
  const std::string& place = PlaceOf(options);
  if (place.empty() || !IsRunFolder(RunOf(place))) return absl::OkStatus();
  CISTERN_ASSIGN_OR_RETURN(const model::ModelConfig trained,
                           model::LoadModelConfig(absl::StrCat(RunOf(place), "/", kRunModelFile),
                                                  {}, model::LayerGrammars()));
  const std::string difference = model::GraphDifference(config, trained);
  if (difference.empty()) return absl::OkStatus();
  return WithFix(absl::InvalidArgumentError(
                     absl::StrCat(config.path, ": its graph differs from the trained one (",
                                  trained.path, "): ", difference)),
                 absl::StrCat("give the run folder in place of the model file: ", RunOf(place)));
}

absl::StatusOr<EvalSummary> EvaluateModel(EvaluateOptions options, const OnNote& note) {
  PredictOptions text;
  static_cast<EvaluateOptions&>(text) = options;
  CISTERN_RETURN_IF_ERROR(TakeTables(&text));
  if (!text.text.files.empty()) {
    absl::StatusOr<EvalSummary> score = EvaluateText(text, note);
    std::vector<std::string> named = OptionsOf(score.status());
    std::replace(named.begin(), named.end(), std::string("input"), std::string("data"));
    return named.empty() ? std::move(score) : WithOptions(score.status(), named);
  }
  if (!options.add_columns.empty()) {
    return WithFix(WithOptions(absl::InvalidArgumentError("columns can be added to tables, not to "
                                                          "data sets"),
                               {"add_column"}),
                   "name rows of text, such as *.csv or *.parquet");
  }
  return WithModel(
      &options, note,
      [&](const model::ModelConfig& config, ParameterClient& client, const JobOptions& job) {
        return Evaluate(config, client, options.data, job);
      });
}

absl::StatusOr<EvalSummary> PredictDataSets(EvaluateOptions options, const std::string& output,
                                            const OnPredictions& visit, const OnNote& note) {
  return WithModel(
      &options, note,
      [&](const model::ModelConfig& config, ParameterClient& client, const JobOptions& job) {
        return Predict(config, client, options.data, output, job, visit);
      });
}

}  // namespace cistern::app
