// Layer fusion: which layers are computed within an earlier one. Fusion saves memory traffic and
// gives the same bits.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/model/config/model_config.h"
#include "worker/model/layer/layer_site.h"

namespace cistern::model {

struct FusionPlan {
  std::vector<Epilogue> epilogues;  // by layer
  std::vector<bool> absorbed;       // by layer: computed by an earlier layer
};

// Plans the fusion of layers. BatchNorm absorbs a following ReLU; BatchNorm with a ReLU, and ReLU,
// absorb a following Dropout; InnerProduct absorbs a following ReLU that has no Dropout after it.
// A layer is absorbed only if it is the only reader of the tensor in between.
FusionPlan PlanFusion(const std::vector<LayerConfig>& layers);

}  // namespace cistern::model
