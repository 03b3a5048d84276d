// Predictions of rows of text, which the recipe of the model encodes.
#pragma once

#include "app/predict/predict.h"

namespace cistern::app {

// PredictFiles of options.text.
absl::StatusOr<PredictResult> PredictText(const PredictOptions& options, const OnNote& note);

}  // namespace cistern::app
