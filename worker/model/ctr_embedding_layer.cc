#include "worker/model/ctr_embedding_layer.h"

#include <algorithm>

#include "common/ctr_accessor.h"
#include "cuda/op/embedding_pool.h"

namespace cistern {
namespace {

// What batch and gradients say about the i-th distinct row.
CtrPush PushOf(const SparseBatch& in, const Batch& batch, size_t slots, size_t i,
               const float* gradient) {
  const size_t label_dim = batch.size == 0 ? 1 : batch.label.size() / batch.size;
  const uint32_t begin = in.segment_offsets[i], end = in.segment_offsets[i + 1];
  CtrPush push;
  push.slot = static_cast<float>(in.segment_outputs[begin] % slots);
  push.show = static_cast<float>(end - begin);
  for (uint32_t k = begin; k < end; ++k) {
    push.click += batch.label[in.segment_outputs[k] / slots * label_dim] > 0 ? 1.0f : 0.0f;
  }
  push.embed_grad = gradient[0];
  push.embedx_grad = gradient + 1;
  return push;
}

}  // namespace

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
  const size_t width = config().vec_size;
  for (size_t i = 0; i < distinct.size(); ++i) {
    if (table(step).full()[distinct[i]] != 0) continue;
    std::fill_n(gradients() + i * width + 1, width - 1, 0.0f);
  }
}

double CtrEmbeddingLayer::AddL2(float l2, const Step& step) {
  const SparseBatch& in = sparse(step);
  const PassTable& rows = table(step);
  const size_t dim = rows.layout().dim();
  double square_sum = 0;
  for (size_t i = 0; i < in.segment_rows.size(); ++i) {
    const float* value = rows.row(in.segment_rows[i]);
    float* gradient = gradients() + i * config().vec_size;
    const auto add = [&](float w, float* g) {
      *g += l2 * w;
      square_sum += double{w} * w;
    };
    add(value[ValueLayout::kEmbedW], gradient);
    for (size_t j = 0; j < dim; ++j) add(value[rows.layout().weight_index() + j], gradient + 1 + j);
  }
  return square_sum;
}

void CtrEmbeddingLayer::MoveRows(float step_size, const Step& step) {
  const SparseBatch& in = sparse(step);
  PassTable& rows = table(step);
  const size_t width = config().vec_size;
#ifdef _OPENMP  // sanitizer builds go without
#pragma omp parallel for schedule(static)
#endif
  for (size_t i = 0; i < in.segment_rows.size(); ++i) {
    const Row row = in.segment_rows[i];
    CtrPush push = PushOf(in, step.batch, slots(), i, gradients() + i * width);
    push.day = config().day;
    rows.full()[row] = UpdateCtrValue(rows.layout(), step_size, rows.keys()[row], push,
                                      rows.row(row), rows.full()[row] != 0);
  }
}

}  // namespace cistern
