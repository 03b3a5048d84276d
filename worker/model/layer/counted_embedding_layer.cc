#include "worker/model/layer/counted_embedding_layer.h"

#include "cuda/op/update/admit_rows.h"

namespace cistern::model {

static_assert(op::kMaxSightings == kMaxAdmitAfter);

absl::Status CountedEmbeddingLayer::Allocate(size_t, DeviceContext& device) {
  return first_weights_.Bring(config().spec, device);
}

void CountedEmbeddingLayer::GradientsMade(const Step& step) {
  if (!changes_gradients()) return;
  const DeviceSparseBatch& in = moved(step);
  op::DropUnadmitted(table(step).has_embedx(), in.segment_rows, gradients(), in.distinct,
                     config().vec_size, step.stream);
}

void CountedEmbeddingLayer::MoveRows(double rate, const Step& step) {
  EmbeddingLayer::MoveRows(rate, step);
  const DeviceSparseBatch& in = moved(step);
  PassTable& rows = table(step);
  const ValueLayout& layout = rows.layout();
  op::Admission admission;
  admission.count = layout.count_field()->first;
  admission.weights = layout.weight_index();
  admission.dim = layout.dim();
  admission.state = layout.state_index();
  admission.state_floats = layout.state_floats();
  admission.after = layout.bounds().admit_after();
  admission.first = first_weights_.weights();
  op::AdmitRows(admission, in.segment_rows,
                step.peers == nullptr ? in.segment_offsets : exchanged(step).occurrence_offsets,
                rows.device_keys(), rows.values(), rows.stride(), rows.has_embedx(), in.distinct,
                step.scaler, step.stream);
}

}  // namespace cistern::model
