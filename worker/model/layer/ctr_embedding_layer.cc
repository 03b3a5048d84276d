#include "worker/model/layer/ctr_embedding_layer.h"

#include "common/value/accessor/ctr_accessor.h"
#include "cuda/core/memory.h"
#include "cuda/op/update/ctr_update.h"

namespace cistern::model {

absl::Status CtrEmbeddingLayer::Allocate(size_t, DeviceContext& device) {
  const float clicks[] = {0, 1};
  CISTERN_RETURN_IF_ERROR(clicks_.Grow(2, device, "labels"));
  CopyToDevice(clicks, clicks_.data(), sizeof(clicks), device.stream());
  CISTERN_RETURN_IF_ERROR(device.stream().Wait());
  return first_weights_.Bring(config().spec, device);
}

absl::Status CtrEmbeddingLayer::Reserve(const DeviceBatch& batch, DeviceContext& device) {
  CISTERN_RETURN_IF_ERROR(EmbeddingLayer::Reserve(batch, device));
  return l2_scratch_.Grow(op::AddCtrL2ScratchFloats(moved(batch).distinct), device,
                          "embedding gradients");
}

// embed_w and embedx_w are not adjacent in a value, therefore each is pooled separately. The output
// is a matrix [b * slots, vec_size] with one row per (sample, slot).
void CtrEmbeddingLayer::PoolRows(const PassTable& rows, const DeviceSparseBatch& in, size_t first,
                                 size_t size, size_t slots, op::Pool pool, op::Values out,
                                 size_t /*out_stride*/, Stream& stream) const {
  const uint32_t* offsets = in.offsets + first * slots;
  const size_t width = config().vec_size, outputs = size * slots;
  Pool(rows.values() + CtrCells::kEmbedW, rows.stride(), in, offsets, pool, out, width, outputs, 1,
       1, stream);
  Pool(rows.values() + rows.layout().weight_index(), rows.stride(), in, offsets, pool, out + 1,
       width, outputs, 1, width - 1, stream);
}

void CtrEmbeddingLayer::GradientsMade(const Step& step) {
  const DeviceSparseBatch& in = moved(step);
  op::DropAbsentEmbedx(table(step).has_embedx(), in.segment_rows, gradients(), in.distinct,
                       config().vec_size - 1, step.stream);
}

void CtrEmbeddingLayer::AddL2(float l2, double* square_sum, const Step& step) {
  const DeviceSparseBatch& in = moved(step);
  const PassTable& rows = table(step);
  op::AddCtrL2({l2, step.loss_scale}, MakeCtrRule(rows.layout()), in.segment_rows, rows.values(),
               rows.stride(), gradients(), square_sum, in.distinct, l2_scratch_.data(),
               step.stream);
}

void CtrEmbeddingLayer::MoveRows(double rate, const Step& step) {
  const DeviceSparseBatch& in = moved(step);
  PassTable& rows = table(step);
  op::CtrOccurrences occurrences;
  occurrences.rows = in.segment_rows;
  occurrences.distinct = in.distinct;
  occurrences.slots = slots();
  if (step.peers == nullptr) {
    occurrences.segment_offsets = in.segment_offsets;
    occurrences.segment_outputs = in.segment_outputs;
    occurrences.labels = step.batch.label;
    occurrences.label_stride = step.batch.label_dim;
  } else {  // the outputs refer to two virtual samples, without and with a click
    occurrences.segment_offsets = exchanged(step).occurrence_offsets;
    occurrences.segment_outputs = exchanged(step).occurrences;
    occurrences.labels = clicks_.data();
  }
  CtrRule rule = MakeCtrRule(rows.layout());
  const float step_size = StepSize(rule.rule, rate, step.number);
  rule.rule = RuleAtStep(rule.rule, rate, step.number);
  op::CtrUpdate(rule, first_weights_.weights(), step_size, config().day, occurrences,
                rows.device_keys(), gradients(), rows.values(), rows.stride(), rows.has_embedx(),
                step.scaler, step.stream);
}

}  // namespace cistern::model
