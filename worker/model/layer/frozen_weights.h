// Layers that prepare weights which will not change any more.
#pragma once

#include "cuda/core/stream.h"
#include "worker/model/layer/parameters.h"

namespace cistern::model {

// A layer that predicts faster from weights that stay as they are.
class FrozenWeights {
 public:
  virtual ~FrozenWeights() = default;
  // From now on Infer may use what is computed here from the weights, which nobody changes, and
  // the layer is not trained. Predictions keep their bits.
  virtual void Freeze(Parameters& parameters, Stream& stream) = 0;
};

}  // namespace cistern::model
