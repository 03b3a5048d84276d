// cistern predict FOLDER: predictions of data files with the model of a serving folder.
#pragma once

#include <string>

#include "cli/command/evaluate_commands.h"

namespace cistern {

// Whether `path` is a serving folder rather than a model file.
bool IsServingFolder(const std::string& path);

// RunPredict with the serving folder flags.model.config: no servers, no --model. The predictions
// are those of `cistern serve`: rows in float32 give the same bits as RunPredict with the model
// that was exported.
absl::StatusOr<Report> RunPredictServing(const EvaluateFlags& flags);

}  // namespace cistern
