// Predictions of whole data sets.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "serve/predictor/predictor.h"
#include "worker/model/config/model_config.h"
#include "worker/model/metric/metric_name.h"

namespace cistern::serve {

// The model file of the current version of a serving folder. Errors as OpenPredictor.
absl::StatusOr<model::ModelConfig> ReadServedConfig(const std::string& folder);

struct PredictedData {
  uint64_t samples = 0;
  uint64_t positives = 0;  // labels above 0.5
  uint64_t unseen = 0;     // occurrences of keys without a row
  // "auc" and "logloss" over the known labels (worker/model/metric/metric_set.h).
  model::MetricValues metrics;
  ServedVersion version;  // that predicted the last request; without one, the current one
};

// Predicts and scores the samples of `files` (file lists or data files, in order) in requests of
// `batch` samples each.
//
// config: of the model that `predictor` serves; the format of the files.
// visit: receives the labels, [n, label_dim] (below -0.5: unknown), and the predictions of each
// request.
using VisitPredictions = std::function<absl::Status(absl::Span<const float> labels,
                                                    absl::Span<const float> predictions)>;
absl::StatusOr<PredictedData> PredictData(Predictor& predictor, const model::ModelConfig& config,
                                          const std::vector<std::string>& files, size_t batch,
                                          const VisitPredictions& visit);

// The same for the samples that `reader` reads.
absl::StatusOr<PredictedData> PredictReader(Predictor& predictor, const model::ModelConfig& config,
                                            data::SampleReader& reader, size_t batch,
                                            const VisitPredictions& visit);

}  // namespace cistern::serve
