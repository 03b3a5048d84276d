// Predictions of rows of text, which the recipe of the model encodes.
#pragma once

#include "app/predict/predict.h"

namespace cistern::app {

// Moves options->data to options->text if it names tables (IsTable) rather than data sets of the
// model, which can be Parquet files, too. kInvalidArgument: tables mixed with data sets.
absl::Status TakeTables(PredictOptions* options);

// PredictFiles of options.text with a run, a saved model or a fleet.
absl::StatusOr<PredictResult> PredictRows(const PredictOptions& options, const OnPredictions& visit,
                                          const OnNote& note);
// The same with an open model of the serving folder options.model.config.
absl::StatusOr<PredictResult> PredictServedRows(serve::Predictor& predictor,
                                                const PredictOptions& options,
                                                const OnPredictions& visit, const OnNote& note);

}  // namespace cistern::app
