// Whether a request for predictions fits a model and the limits of its server.
#pragma once

#include <cstddef>

#include "common/base/status.h"
#include "serve/predictor/open_predictor.h"
#include "serve/predictor/predictor.h"

namespace cistern::serve {

// predictions: how many the caller has room for. kInvalidArgument, naming the input or the sample:
// counts that do not fit each other or the model, offsets that fall, a dense feature that is not
// finite, too many samples or keys.
absl::Status CheckRequest(const PredictRequest& request, size_t predictions,
                          const PredictorShape& shape, const PredictorOptions& limits);

}  // namespace cistern::serve
