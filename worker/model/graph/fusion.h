// Which layers are computed in the sweep of another: fewer trips through memory, the same bits.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/model/config/model_config.h"
#include "worker/model/layer/layer_site.h"

namespace cistern {

struct FusionPlan {
  std::vector<Epilogue> epilogues;  // by layer
  std::vector<bool> absorbed;       // by layer: computed by an earlier one
};

// BatchNorm takes the ReLU behind it, either takes the Dropout behind that, and InnerProduct takes
// a ReLU without one, where nobody else reads the tensor between.
FusionPlan PlanFusion(const std::vector<LayerConfig>& layers);

}  // namespace cistern
