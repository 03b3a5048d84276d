// The random draws of one Dropout layer in each step.
#pragma once

#include "common/base/hash.h"
#include "cuda/op/dense/dropout.h"
#include "worker/model/layer/layer_configs.h"
#include "worker/model/layer/layer_site.h"

namespace cistern::model {

// A pure function of (solver.seed, position of the Dropout layer, step). The draws do not depend on
// whether the layer is fused into another one, or on how workers split the batch.
class DropoutSeries {
 public:
  // The site's own Dropout, or the Dropout of its epilogue (rate 0 if there is none).
  explicit DropoutSeries(const LayerSite& site)
      : seed_(MixKey(site.model().solver.seed)),
        index_(site.config().type == "Dropout" ? site.index() : site.epilogue().dropout_index) {
    if (site.config().type == "Dropout") rate_ = site.own<DropoutConfig>().rate;
    if (site.epilogue().dropout != nullptr) {
      rate_ = site.epilogue().dropout->own<DropoutConfig>().rate;
    }
  }

  float rate() const { return rate_; }
  // rows: rows of the matrix per sample.
  op::DropoutDraw At(const Step& step, size_t rows) const {
    return {rate_, seed_, step.number << 16 | index_, step.first_of_all() * rows};
  }

 private:
  uint64_t seed_;
  uint32_t index_;
  float rate_ = 0;
};

}  // namespace cistern::model
