#include "worker/model/embedding_layer.h"

#include <algorithm>

#include "cuda/op/elementwise.h"
#include "cuda/op/embedding_pool.h"
#include "cuda/op/make_up_steps.h"
#include "cuda/op/sparse_update.h"
#include "cuda/op/sum.h"
#include "worker/model/ctr_embedding_layer.h"

namespace cistern {
namespace {

op::Pool PoolOf(const EmbeddingConfig& config) {
  return config.combiner == Combiner::kMean ? op::Pool::kMean : op::Pool::kSum;
}

}  // namespace

EmbeddingLayer::EmbeddingLayer(const EmbeddingConfig& config, size_t index, size_t slots,
                               Tensor* out)
    : Layer({}, {out}),
      config_(config),
      index_(index),
      slots_(slots),
      step_sizes_(config.optimizer.rule) {}

void EmbeddingLayer::MakeUp(const Step& step, double lr_scale) {
  if (!makes_up()) return;
  step_sizes_.Advance(step.number - 1, config_.optimizer.schedule, lr_scale);
  const SparseBatch& in = sparse(step);
  PassTable& rows = table(step);
  const ValueLayout& layout = rows.layout();
  op::MakeUpSteps(layout.rule(), step_sizes_.sizes(), step_sizes_.fading_steps(), step.number - 1,
                  step.number, in.segment_rows.data(), rows.values() + layout.weight_index(),
                  rows.values() + layout.state_index(), rows.stride(), in.segment_rows.size(),
                  config_.vec_size, step.stream);
}

void EmbeddingLayer::BringUp(PassTable& rows, Stream& stream) const {
  if (!makes_up()) return;
  const ValueLayout& layout = rows.layout();
  op::MakeUpSteps(layout.rule(), step_sizes_.sizes(), step_sizes_.fading_steps(),
                  step_sizes_.step(), step_sizes_.step(), nullptr,
                  rows.values() + layout.weight_index(), rows.values() + layout.state_index(),
                  rows.stride(), rows.rows(), config_.vec_size, stream);
}

void EmbeddingLayer::Forward(const Step& step) {
  const SparseBatch& in = sparse(step);
  const PassTable& rows = table(step);
  op::EmbeddingPool(rows.values() + rows.layout().weight_index(), rows.stride(), in.rows.data(),
                    in.offsets.data() + step.first * slots_, PoolOf(config_), output().value(),
                    slots_ * config_.vec_size, step.size, slots_, config_.vec_size, step.stream);
}

void EmbeddingLayer::Backward(const Step& step) {
  const SparseBatch& in = sparse(step);
  const size_t distinct = in.segment_rows.size();
  gradients_.Grow(distinct * config_.vec_size);
  scratch_.Grow(std::max(op::AddRowL2ScratchFloats(distinct),
                         op::SumScratchFloats(distinct * config_.vec_size)));
  op::EmbeddingPoolBackward(output().grad(), slots_ * config_.vec_size, in.offsets.data(),
                            PoolOf(config_), in.segment_offsets.data(), in.segment_outputs.data(),
                            gradients_.data(), distinct, slots_, config_.vec_size, step.stream);
}

double EmbeddingLayer::AddL2(float l2, const Step& step) {
  const SparseBatch& in = sparse(step);
  const PassTable& rows = table(step);
  double square_sum = 0;
  op::AddRowL2(l2, in.segment_rows.data(), rows.values() + rows.layout().weight_index(),
               rows.stride(), gradients_.data(), &square_sum, in.segment_rows.size(),
               config_.vec_size, scratch_.data(), step.stream);
  return square_sum;
}

double EmbeddingLayer::SumOfSquares(const Step& step) {
  double sum = 0;
  op::SumOfSquares(gradients_.data(), &sum, sparse(step).segment_rows.size() * config_.vec_size,
                   scratch_.data(), step.stream);
  return sum;
}

void EmbeddingLayer::ScaleGradients(float factor, const Step& step) {
  op::Scale(factor, gradients_.data(), sparse(step).segment_rows.size() * config_.vec_size,
            step.stream);
}

void EmbeddingLayer::Update(const Step& step, double lr_scale) {
  const OptimizerConfig& optimizer = config_.optimizer;
  MoveRows(StepSize(optimizer.rule, optimizer.schedule.At(step.number) * lr_scale, step.number),
           step);
  if (makes_up()) step_sizes_.Advance(step.number, optimizer.schedule, lr_scale);
}

void EmbeddingLayer::MoveRows(float step_size, const Step& step) {
  const SparseBatch& in = sparse(step);
  PassTable& rows = table(step);
  const ValueLayout& layout = rows.layout();
  op::SparseUpdate(layout.rule(), step_size, in.segment_rows.data(), gradients_.data(),
                   rows.values() + layout.weight_index(), rows.values() + layout.state_index(),
                   rows.stride(), in.segment_rows.size(), config_.vec_size, step.stream);
}

std::unique_ptr<EmbeddingLayer> MakeEmbeddingLayer(const EmbeddingConfig& config, size_t index,
                                                   size_t slots, Tensor* out) {
  if (config.spec.accessor() == v1::TableSpec::CTR) {
    return std::make_unique<CtrEmbeddingLayer>(config, index, slots, out);
  }
  return std::make_unique<EmbeddingLayer>(config, index, slots, out);
}

}  // namespace cistern
