// An embedding whose rows count how often they occur in training, and may have no weights until
// they have occurred often enough.
#pragma once

#include "worker/model/layer/device_first_weights.h"
#include "worker/model/layer/embedding_layer.h"

namespace cistern::model {

// With TableBounds.admit_after, a row without weights reads as zeros, like a key without a row in
// evaluation, and receives no gradient. After the step in which its count reaches admit_after it
// has its first weights. All of it is in the row, so evaluation, exports and served versions see
// the zeros that training sees.
class CountedEmbeddingLayer : public EmbeddingLayer {
 public:
  using EmbeddingLayer::EmbeddingLayer;

  absl::Status Allocate(size_t batch, DeviceContext& device) override;

 protected:
  void MoveRows(double rate, const Step& step) override;
  void GradientsMade(const Step& step) override;
  bool changes_gradients() const override { return config().spec.bounds().admit_after() > 0; }

 private:
  DeviceFirstWeights first_weights_;
};

}  // namespace cistern::model
