// Predictions of rows of text, which the recipe of the model encodes.
#pragma once

#include <optional>

#include "app/predict/predict.h"

namespace cistern::app {

// options.data as rows of text, if they are tables (IsTable) and no data sets of the model: Parquet
// is what the model reads. nullopt: they are data sets, or there are none.
absl::StatusOr<std::optional<PredictOptions>> AsText(const EvaluateOptions& options);

// PredictFiles of options.text, which calls `visit` (may be null) for each batch of rows, in their
// order, with their labels (below kNoLabelBelow: unknown) and predictions. options.output may be
// empty: no file is written. Errors also those of `visit`.
absl::StatusOr<PredictResult> PredictRows(const PredictOptions& options, const OnPredictions& visit,
                                          const OnNote& note);

}  // namespace cistern::app
