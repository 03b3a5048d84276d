// cistern predict FOLDER: predictions of data files with the model of a serving folder.
#pragma once

#include <string>

#include "cli/command/evaluate_commands.h"
#include "serve/predictor/predict_data.h"

namespace cistern {

// Whether `path` is a serving folder rather than a model file.
bool IsServingFolder(const std::string& path);

// kInvalidArgument, with a fix: flags that cannot be combined with a serving folder.
absl::Status CheckServingFlags(const EvaluateFlags& flags);

// The summary of predictions, without its time.
EvalSummary SummaryOf(const PredictedData& done);

// RunPredict with the serving folder flags.model.config: no servers, no --model. The predictions
// are those of `cistern serve`: rows in float32 give the same bits as RunPredict with the model
// that was exported.
absl::StatusOr<Report> RunPredictServing(const EvaluateFlags& flags);

}  // namespace cistern
