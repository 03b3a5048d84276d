// An embedding whose rows are ctr values: shows and clicks, embed_w, and embedx_w once it exists.
#pragma once

#include "common/value/first_weights.h"
#include "worker/model/layer/embedding_layer.h"

namespace cistern {

// A slot's vector is [embed_w, embedx_w[D]]; an embedx that does not exist reads as zero (its cells
// are zero in a pass table) and takes no gradient. Each distinct row of a batch is updated by
// op::CtrUpdate: show = occurrences, click = occurrences in samples whose first label is above 0,
// slot = that of the first occurrence, within its input.
class CtrEmbeddingLayer : public EmbeddingLayer {
 public:
  using EmbeddingLayer::EmbeddingLayer;

  absl::Status Allocate(size_t batch, DeviceContext& device) override;
  absl::Status Reserve(size_t distinct, DeviceContext& device) override;
  void AddL2(float l2, double* square_sum, const Step& step) override;

 protected:
  void MoveRows(float step_size, const Step& step) override;
  void PoolRows(const PassTable& rows, const SparseView& in, size_t first, size_t size,
                size_t slots, op::Pool pool, op::Values out, Stream& stream) const override;
  void GradientsMade(const Step& step) override;

 private:
  FirstWeights first_weights_;  // of the table; the sizes of slots lie in slot_sizes_
  DeviceBuffer<uint64_t> slot_sizes_;
  DeviceFloats l2_scratch_;
  DeviceFloats clicks_;  // {0, 1}: the label of a sample that was not clicked, and of one that was
};

}  // namespace cistern
