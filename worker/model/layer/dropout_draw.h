// The random draws of one Dropout layer, step after step.
#pragma once

#include "common/base/hash.h"
#include "cuda/op/dense/dropout.h"
#include "worker/model/layer/layer_site.h"

namespace cistern {

// A pure function of (solver.seed, position of the Dropout layer, step): whether the layer is
// computed alone or within another makes no difference, nor whether other workers have the rest of
// the batch.
class DropoutSeries {
 public:
  // The Dropout of the site's epilogue (rate 0 where there is none), or the site itself.
  explicit DropoutSeries(const LayerSite& site)
      : seed_(MixKey(site.model().solver.seed)),
        index_(site.config().type == "Dropout" ? site.index() : site.epilogue().dropout_index) {
    if (site.config().type == "Dropout") rate_ = static_cast<float>(site.config().rate);
    if (site.epilogue().dropout != nullptr) {
      rate_ = static_cast<float>(site.epilogue().dropout->rate);
    }
  }

  float rate() const { return rate_; }
  // rows: of the matrix, a sample.
  op::DropoutDraw At(const Step& step, size_t rows) const {
    return {rate_, seed_, step.number << 16 | index_, step.first_of_all() * rows};
  }

 private:
  uint64_t seed_;
  uint32_t index_;
  float rate_ = 0;
};

}  // namespace cistern
