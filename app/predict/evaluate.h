// A trained model applied to data sets: its metrics, or a prediction for each sample.
#pragma once

#include <string>
#include <vector>

#include "app/model/model_source.h"
#include "worker/train/jobs.h"

namespace cistern::app {

struct EvaluateOptions {
  ModelOptions model;  // model.config may be a run folder
  std::string
      model_dir;       // the trained model: a run folder, or a saved model; empty: servers hold it
  std::string recipe;  // of the model, if neither folder tells; empty: unknown
  // File lists, data files, or tables of text (IsTable), which the recipe of the model encodes;
  // read in this order. Evaluation, empty: the model's eval_source.
  std::vector<std::string> data;
  // Of tables: features that they lack, which are empty in all rows.
  std::vector<std::string> add_columns = {};
};

// If options->model.config is a run folder, takes model file, trained model and recipe from it. Of
// kind kTable: it is a table.
absl::Status TakeRun(EvaluateOptions* options);

// kInvalidArgument, with the first difference, unless `config` has the graph that was trained, as
// far as a run folder tells: options.model_dir or, with servers, options.recipe.
absl::Status CheckGraph(const EvaluateOptions& options, const model::ModelConfig& config);

// AUC, log loss and solver.eval_metrics.
//
// kInvalidArgument: rows of text without labels; no trained model is named; the data was not
// converted as the training data of the model was (with the first difference); the model file has
// another graph. Of kind kBadCheckpoint: the saved model is corrupt. Errors of the data name file
// and record.
absl::StatusOr<EvalSummary> EvaluateModel(EvaluateOptions options, const OnNote& note);

// Predicts the samples of data sets, in their order (Predict in jobs.h). output: a file of lines
// label<TAB>prediction; may be empty. visit: may be null. Errors as EvaluateModel, and those of
// `visit`.
absl::StatusOr<EvalSummary> PredictDataSets(EvaluateOptions options, const std::string& output,
                                            const OnPredictions& visit, const OnNote& note);

}  // namespace cistern::app
