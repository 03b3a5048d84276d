#include "worker/model/ctr_embedding_layer.h"

#include "common/ctr_accessor.h"
#include "cuda/memory.h"
#include "cuda/op/ctr_update.h"
#include "cuda/op/embedding_pool.h"

namespace cistern {

// The two parts of a value do not lie side by side, so each is pooled alone: every (sample, slot)
// is a row of a matrix [b * slots, vec_size].
void CtrEmbeddingLayer::Forward(const Step& step) {
  const SparseBatch& in = sparse(step);
  const PassTable& rows = table(step);
  const uint32_t* offsets = in.offsets.data() + step.first * slots();
  const op::Pool pool = config().combiner == Combiner::kMean ? op::Pool::kMean : op::Pool::kSum;
  const size_t width = config().vec_size, outputs = step.size * slots();
  op::EmbeddingPool(rows.values() + ValueLayout::kEmbedW, rows.stride(), in.rows.data(), offsets,
                    pool, output().value(), width, outputs, 1, 1, step.stream);
  op::EmbeddingPool(rows.values() + rows.layout().weight_index(), rows.stride(), in.rows.data(),
                    offsets, pool, output().value() + 1, width, outputs, 1, width - 1, step.stream);
}

void CtrEmbeddingLayer::Backward(const Step& step) {
  EmbeddingLayer::Backward(step);
  const std::vector<Row>& distinct = sparse(step).segment_rows;
  op::DropAbsentEmbedx(table(step).full(), distinct.data(), gradients(), distinct.size(),
                       config().vec_size - 1, step.stream);
  l2_scratch_.Grow(op::AddCtrL2ScratchFloats(distinct.size()));
}

double CtrEmbeddingLayer::AddL2(float l2, const Step& step) {
  const std::vector<Row>& distinct = sparse(step).segment_rows;
  const PassTable& rows = table(step);
  double square_sum = 0;
  op::AddCtrL2(l2, MakeCtrRule(rows.layout()), distinct.data(), rows.values(), rows.stride(),
               gradients(), &square_sum, distinct.size(), l2_scratch_.data(), step.stream);
  return square_sum;
}

FirstWeights CtrEmbeddingLayer::FirstWeightsOn(Stream& stream) {
  const v1::TableSpec& spec = config().spec;
  FirstWeights first = MakeFirstWeights(spec.initializer(), spec.seed());
  if (first.slot_num == 0) return first;
  static_assert(sizeof(*first.slot_sizes) == 2 * sizeof(float));
  if (slot_sizes_.size() == 0) {
    slot_sizes_.Grow(2 * first.slot_num);
    CopyToDevice(first.slot_sizes, slot_sizes_.data(), first.slot_num * sizeof(*first.slot_sizes),
                 stream);
  }
  first.slot_sizes = reinterpret_cast<const uint64_t*>(slot_sizes_.data());
  return first;
}

void CtrEmbeddingLayer::MoveRows(float step_size, const Step& step) {
  const SparseBatch& in = sparse(step);
  const Batch& batch = step.batch;
  PassTable& rows = table(step);
  op::CtrOccurrences occurrences;
  occurrences.rows = in.segment_rows.data();
  occurrences.segment_offsets = in.segment_offsets.data();
  occurrences.segment_outputs = in.segment_outputs.data();
  occurrences.distinct = in.segment_rows.size();
  occurrences.slots = slots();
  occurrences.labels = batch.label.data();
  occurrences.label_stride = batch.size == 0 ? 1 : batch.label.size() / batch.size;
  op::CtrUpdate(MakeCtrRule(rows.layout()), FirstWeightsOn(step.stream), step_size, config().day,
                occurrences, rows.keys().data(), gradients(), rows.values(), rows.stride(),
                rows.full(), step.stream);
}

}  // namespace cistern
