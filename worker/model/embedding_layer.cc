#include "worker/model/embedding_layer.h"

#include <algorithm>

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

void EmbeddingLayer::SetClock(const v1::RateHistory& rates, uint64_t step) {
  step_sizes_.Restore(rates, step);
  sizes_brought_ = 0;
}

absl::StatusOr<const float*> EmbeddingLayer::SizesOn(DeviceContext& device) {
  const size_t count = step_sizes_.size();
  if (device.kind() == DeviceKind::kCpu || count == 0) return step_sizes_.sizes();
  if (count > sizes_.size()) {
    CISTERN_RETURN_IF_ERROR(sizes_.Grow(std::max<size_t>(4096, 2 * count), device, "step sizes"));
    sizes_brought_ = 0;
  }
  CopyToDevice(step_sizes_.sizes() + sizes_brought_, sizes_.data() + sizes_brought_,
               (count - sizes_brought_) * sizeof(float), device.stream());
  sizes_brought_ = count;
  return sizes_.data();
}

absl::Status EmbeddingLayer::MakeUp(const Step& step, double lr_scale, DeviceContext& device) {
  if (!makes_up()) return absl::OkStatus();
  step_sizes_.Advance(step.number - 1, config_.optimizer.schedule, lr_scale);
  CISTERN_ASSIGN_OR_RETURN(const float* sizes, SizesOn(device));
  const SparseView& in = sparse(step);
  PassTable& rows = table(step);
  const ValueLayout& layout = rows.layout();
  op::MakeUpSteps(layout.rule(), sizes, step_sizes_.fading_steps(), step.number - 1, step.number,
                  in.segment_rows, rows.values() + layout.weight_index(),
                  rows.values() + layout.state_index(), rows.stride(), in.distinct,
                  config_.vec_size, step.stream);
  return absl::OkStatus();
}

absl::Status EmbeddingLayer::BringUp(PassTable& rows, DeviceContext& device) {
  if (!makes_up()) return absl::OkStatus();
  CISTERN_ASSIGN_OR_RETURN(const float* sizes, SizesOn(device));
  const ValueLayout& layout = rows.layout();
  op::MakeUpSteps(layout.rule(), sizes, step_sizes_.fading_steps(), step_sizes_.step(),
                  step_sizes_.step(), nullptr, rows.values() + layout.weight_index(),
                  rows.values() + layout.state_index(), rows.stride(), rows.rows(),
                  config_.vec_size, device.stream());
  return absl::OkStatus();
}

absl::Status EmbeddingLayer::Reserve(size_t distinct, DeviceContext& device) {
  CISTERN_RETURN_IF_ERROR(
      gradients_.Grow(distinct * config_.vec_size, device, "embedding gradients"));
  return scratch_.Grow(std::max(op::AddRowL2ScratchFloats(distinct),
                                op::SumScratchFloats(distinct * config_.vec_size)),
                       device, "embedding gradients");
}

void EmbeddingLayer::Forward(const Step& step) {
  const SparseView& in = sparse(step);
  const PassTable& rows = table(step);
  op::EmbeddingPool(rows.values() + rows.layout().weight_index(), rows.stride(), in.rows,
                    in.offsets + step.first * slots_, PoolOf(config_), output().value(),
                    slots_ * config_.vec_size, step.size, slots_, config_.vec_size, step.stream);
}

void EmbeddingLayer::Backward(const Step& step) {
  const SparseView& in = sparse(step);
  op::EmbeddingPoolBackward(output().grad(), slots_ * config_.vec_size, in.offsets, PoolOf(config_),
                            in.segment_offsets, in.segment_outputs, gradients_.data(), in.distinct,
                            slots_, config_.vec_size, step.stream);
}

void EmbeddingLayer::AddL2(float l2, double* square_sum, const Step& step) {
  const SparseView& in = sparse(step);
  const PassTable& rows = table(step);
  op::AddRowL2({l2, step.loss_scale}, in.segment_rows, rows.values() + rows.layout().weight_index(),
               rows.stride(), gradients_.data(), square_sum, in.distinct, config_.vec_size,
               scratch_.data(), step.stream);
}

void EmbeddingLayer::SumOfSquares(double* sum, const Step& step) {
  op::SumOfSquares(gradients_.data(), sum, sparse(step).distinct * config_.vec_size,
                   scratch_.data(), step.stream);
}

void EmbeddingLayer::ScaleGradients(const Step& step) {
  op::ScaleByGate(step.gate, gradients_.data(), sparse(step).distinct * config_.vec_size,
                  step.stream);
}

void EmbeddingLayer::Update(const Step& step, double lr_scale) {
  const OptimizerConfig& optimizer = config_.optimizer;
  MoveRows(StepSize(optimizer.rule, optimizer.schedule.At(step.number) * lr_scale, step.number),
           step);
  if (makes_up()) step_sizes_.Advance(step.number, optimizer.schedule, lr_scale);
}

void EmbeddingLayer::MoveRows(float step_size, const Step& step) {
  const SparseView& in = sparse(step);
  PassTable& rows = table(step);
  const ValueLayout& layout = rows.layout();
  op::SparseUpdate(layout.rule(), step_size, in.segment_rows, gradients_.data(),
                   rows.values() + layout.weight_index(), rows.values() + layout.state_index(),
                   rows.stride(), in.distinct, config_.vec_size, step.gate, step.stream);
}

std::unique_ptr<EmbeddingLayer> MakeEmbeddingLayer(const EmbeddingConfig& config, size_t index,
                                                   size_t slots, Tensor* out) {
  if (config.spec.accessor() == v1::TableSpec::CTR) {
    return std::make_unique<CtrEmbeddingLayer>(config, index, slots, out);
  }
  return std::make_unique<EmbeddingLayer>(config, index, slots, out);
}

}  // namespace cistern
