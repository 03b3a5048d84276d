// cistern eval and cistern predict: apply a trained model to data.
#pragma once

#include <string>
#include <vector>

#include "app/predict/predict.h"
#include "cli/terminal/command_line.h"

namespace cistern::cli {

// Reports AUC, log loss and solver.eval_metrics of a trained model on flags.data (empty: on the
// model's eval_source).
absl::StatusOr<Report> RunEvaluate(const app::PredictOptions& flags, Console& console);
// Writes the label and the prediction of every sample to flags.output. flags.model.config may be a
// serving folder.
//
// Both take a run folder as flags.model.config. Data that was not converted as the training data of
// the model was is kInvalidArgument, with the first difference.
absl::StatusOr<Report> RunPredict(const app::PredictOptions& flags, Console& console);

// The report of either, without its output.
Report ReportOf(const EvalSummary& summary);

void AddEvaluateCommand(Command& root);
void AddPredictCommand(Command& root);

}  // namespace cistern::cli
