// cistern predict --input: predictions of rows of text, encoded by the recipe of the model.
#pragma once

#include "cli/command/evaluate_commands.h"

namespace cistern {

// RunPredict for flags.text.files. flags.model.config: a model file, as RunPredict has found it, or
// a serving folder. Writes a table (prediction_table.h) to flags.output.
//
// The predictions are those of the converted data set, bit for bit.
// kInvalidArgument, with a fix: the model has no recipe, or the text lacks a column of it.
absl::StatusOr<Report> RunPredictText(const EvaluateFlags& flags, Console& console);

}  // namespace cistern
