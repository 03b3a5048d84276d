// An embedding whose rows are ctr values: shows and clicks, embed_w, and embedx_w once it exists.
#pragma once

#include "worker/model/embedding_layer.h"

namespace cistern {

// A slot's vector is [embed_w, embedx_w[D]]; an embedx that does not exist reads as zero (its cells
// are zero in a pass table) and takes no gradient. Each distinct row of a batch is updated by
// UpdateCtrValue (common/ctr_accessor.h): show = occurrences, click = occurrences in samples whose
// first label is above 0, slot = that of the first occurrence, within its input.
//
// The update is not an op: it runs on the CPU device.
class CtrEmbeddingLayer : public EmbeddingLayer {
 public:
  using EmbeddingLayer::EmbeddingLayer;

  void Forward(const Step& step) override;
  void Backward(const Step& step) override;
  double AddL2(float l2, const Step& step) override;

 protected:
  void MoveRows(float step_size, const Step& step) override;
};

}  // namespace cistern
