#include "app/predict/predict.h"

#include "app/predict/predict_serving.h"
#include "app/predict/predict_text.h"
#include "common/io/new_file.h"
#include "worker/data/format/file_list.h"
#include "worker/data/prepare/column_list.h"

namespace cistern::app {
namespace {

// Data sets are read as the model says.
absl::Status CheckNoTextOptions(const PredictOptions& options) {
  std::vector<std::string> given;
  if (!options.text.keep.empty()) given.push_back("keep");
  if (!options.text.columns.empty()) given.push_back("columns");
  if (options.text.delimiter != 0) given.push_back("delimiter");
  if (!options.recipe.empty()) given.push_back("recipe");
  if (!options.add_columns.empty()) given.push_back("add_column");
  if (given.empty()) return absl::OkStatus();
  return WithFix(
      WithOptions(absl::InvalidArgumentError("columns and their encoding can be chosen for rows of "
                                             "text, not for data sets"),
                  given),
      "name rows of text, such as *.csv or *.parquet");
}

// The output must not replace what is read.
absl::Status CheckOutput(const PredictOptions& options) {
  if (options.output.empty()) return absl::OkStatus();
  std::vector<std::string> read = {options.model.config};
  for (const std::string& file : options.text.files) {
    if (file != "-") read.push_back(file);
  }
  for (const std::string& source : options.data) {
    const std::vector<std::string> files = data::FilesOfSource(source);
    read.insert(read.end(), files.begin(), files.end());
  }
  return WithOptions(NewFile::Check(options.output, read), {"output"});
}

// Finds out what `options` name, and checks it.
absl::Status Resolve(PredictOptions* options, bool is_serving) {
  CISTERN_RETURN_IF_ERROR(TakeTables(options));
  if (options->text.files.empty()) CISTERN_RETURN_IF_ERROR(CheckNoTextOptions(*options));
  CISTERN_ASSIGN_OR_RETURN(options->text.columns, data::ExpandColumns(options->text.columns));
  CISTERN_ASSIGN_OR_RETURN(options->text.add_columns, data::ExpandColumns(options->add_columns));
  if (!is_serving) CISTERN_RETURN_IF_ERROR(TakeRun(options));
  return CheckOutput(*options);
}

absl::StatusOr<PredictResult> PredictResolved(serve::Predictor& predictor,
                                              const PredictOptions& options, const OnNote& note,
                                              const OnPredictions& visit) {
  return options.text.files.empty() ? PredictServing(predictor, options, visit)
                                    : PredictServedRows(predictor, options, visit, note);
}

}  // namespace

absl::StatusOr<PredictResult> PredictFiles(const PredictOptions& given, const OnNote& note,
                                           const OnPredictions& visit) {
  PredictOptions options = given;
  const bool is_serving = IsServingFolder(options.model.config);
  CISTERN_RETURN_IF_ERROR(Resolve(&options, is_serving));
  if (is_serving) {
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<serve::Predictor> predictor,
                             OpenServed(options));
    return PredictResolved(*predictor, options, note, visit);
  }
  if (!options.text.files.empty()) return PredictRows(options, visit, note);
  PredictResult result;
  CISTERN_ASSIGN_OR_RETURN(result.summary, PredictDataSets(options, options.output, visit, note));
  return result;
}

absl::StatusOr<PredictResult> PredictFilesWith(serve::Predictor& predictor,
                                               const PredictOptions& given, const OnNote& note,
                                               const OnPredictions& visit) {
  PredictOptions options = given;
  CISTERN_RETURN_IF_ERROR(Resolve(&options, /*is_serving=*/true));
  return PredictResolved(predictor, options, note, visit);
}

}  // namespace cistern::app
