// cistern eval and cistern predict: apply a trained model to data.
#pragma once

#include <string>
#include <vector>

#include "cli/session/model_source.h"
#include "cli/terminal/command_line.h"

namespace cistern {

struct EvaluateFlags {
  ModelFlags model;
  std::string model_dir;
  std::vector<std::string> data;
  std::string output;     // of predict
  uint64_t batch = 4096;  // of predict, with a serving folder
};

// Reports AUC, log loss and solver.eval_metrics of a trained model on flags.data (empty: on the
// model's eval_source).
absl::StatusOr<Report> RunEvaluate(const EvaluateFlags& flags, Console& console);
// Writes the label and the prediction of every sample to flags.output. flags.model.config may be a
// serving folder (predict_serving.h).
absl::StatusOr<Report> RunPredict(const EvaluateFlags& flags, Console& console);

// The report of either, without its output.
Report ReportOf(const EvalSummary& summary);

void AddEvaluateCommand(Command& root);
void AddPredictCommand(Command& root);

}  // namespace cistern
