// cistern eval and cistern predict: apply a trained model to data.
#pragma once

#include <string>
#include <vector>

#include "app/predict/evaluate.h"
#include "cli/terminal/command_line.h"
#include "worker/data/recipe/text_samples.h"

namespace cistern {

struct EvaluateFlags : app::EvaluateOptions {
  std::string output;     // of predict
  uint64_t batch = 4096;  // of predict, with a serving folder
  TextInput text;         // of predict: --input and its companions; no files: data is named
};

// Reports AUC, log loss and solver.eval_metrics of a trained model on flags.data (empty: on the
// model's eval_source).
absl::StatusOr<Report> RunEvaluate(const EvaluateFlags& flags, Console& console);
// Writes the label and the prediction of every sample to flags.output. flags.model.config may be a
// serving folder (predict_serving.h). With flags.text: see predict_text.h.
//
// Both take a run folder as flags.model.config. Data that was not converted as the training data of
// the model was is kInvalidArgument, with the first difference.
absl::StatusOr<Report> RunPredict(const EvaluateFlags& flags, Console& console);

// The report of either, without its output.
Report ReportOf(const EvalSummary& summary);

void AddEvaluateCommand(Command& root);
void AddPredictCommand(Command& root);

}  // namespace cistern
