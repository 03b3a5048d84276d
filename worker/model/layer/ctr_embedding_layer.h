// An embedding whose rows are ctr values: shows, clicks, embed_w, and embedx_w once a row has it.
#pragma once

#include "worker/model/layer/device_first_weights.h"
#include "worker/model/layer/embedding_layer.h"

namespace cistern::model {

// A slot's vector is [embed_w, embedx_w[D]]. An absent embedx reads as zero (its floats are zero in
// a pass table) and receives no gradient. op::CtrUpdate updates each distinct row of a batch with
// show = its occurrences, click = its occurrences in samples whose first label is above 0, and slot
// = the slot of its first occurrence, counted within its input.
class CtrEmbeddingLayer : public EmbeddingLayer {
 public:
  using EmbeddingLayer::EmbeddingLayer;

  absl::Status Allocate(size_t batch, DeviceContext& device) override;
  absl::Status Reserve(const DeviceBatch& batch, DeviceContext& device) override;
  void AddL2(float l2, double* square_sum, const Step& step) override;
  bool can_write_strided() const override { return false; }  // it pools the columns of a row apart

 protected:
  void MoveRows(double rate, const Step& step) override;
  void PoolRows(const PassTable& rows, const DeviceSparseBatch& in, size_t first, size_t size,
                size_t slots, op::Pool pool, op::Values out, size_t out_stride,
                Stream& stream) const override;
  void GradientsMade(const Step& step) override;
  bool changes_gradients() const override { return true; }

 private:
  DeviceFirstWeights first_weights_;
  DeviceFloats l2_scratch_;
  DeviceFloats clicks_;  // {0, 1}: the labels of a sample without and with a click
};

}  // namespace cistern::model
