// Predictions with the model of a serving folder: those of `cistern serve`.
#pragma once

#include <memory>
#include <string>

#include "app/predict/predict.h"
#include "serve/predictor/predict_data.h"

namespace cistern::app {

// Whether `path` is a serving folder rather than a model file or a run.
bool IsServingFolder(const std::string& path);

// Opens the current version of options.model.config for requests of options.batch samples.
// kInvalidArgument, with a fix: options that cannot be combined with a serving folder. Errors of
// kind kBadCheckpoint: the version is damaged.
absl::StatusOr<std::unique_ptr<serve::Predictor>> OpenServed(const PredictOptions& options);

// The summary of predictions, without its time.
EvalSummary SummaryOf(const serve::PredictedData& done);

// Predicts data files with an open model of options.model.config. visit: may be null. The bits of
// rows in float32 are those of PredictDataSets with the model that was exported.
absl::StatusOr<PredictResult> PredictServing(serve::Predictor& predictor,
                                             const PredictOptions& options,
                                             const OnPredictions& visit);

}  // namespace cistern::app
