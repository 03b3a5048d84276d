// Checks the names of a graph, before any shape is known.
#pragma once

#include "common/base/status.h"
#include "worker/model/config/model_config.h"

namespace cistern::model {

// Returns OK if every bottom is the top of an earlier layer, no name is defined twice, no layer
// reads its own top, and the model has exactly one loss.
// kInvalidArgument names the layer, its path and, for an undefined bottom, the nearest defined
// tensor.
absl::Status CheckGraph(const ModelConfig& config);

}  // namespace cistern::model
