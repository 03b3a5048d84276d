#include "worker/model/layer/embedding_layer.h"

#include <algorithm>
#include <numeric>

#include "cuda/op/dense/elementwise.h"
#include "cuda/op/dense/sum.h"
#include "cuda/op/embedding/embedding_pool.h"
#include "cuda/op/embedding/weighted_pool.h"
#include "cuda/op/update/deferred_updates.h"
#include "cuda/op/update/sparse_update.h"

namespace cistern::model {
namespace {

size_t TotalOf(absl::Span<const uint32_t> by_worker) {
  return std::accumulate(by_worker.begin(), by_worker.end(), size_t{0});
}

// What each occurrence of a row is multiplied with, if the keys of `in` have weights.
const float* FactorsOf(const DeviceSparseBatch& in, op::Pool pool) {
  return pool == op::Pool::kMean ? in.shares : in.weights;
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

absl::Status EmbeddingLayer::ApplyDeferred(const Step& step, double lr_scale,
                                           DeviceContext& device) {
  if (!defers_updates()) return absl::OkStatus();
  step_sizes_.Advance(step.number - 1, config_.optimizer.schedule, lr_scale);
  CISTERN_ASSIGN_OR_RETURN(const float* sizes, SizesOn(device));
  const DeviceSparseBatch& in = moved(step);
  PassTable& rows = table(step);
  const ValueLayout& layout = rows.layout();
  op::ApplyDeferredUpdates(layout.rule(), sizes, step_sizes_.fading_steps(), step.number - 1,
                           step.number, in.segment_rows, rows.values() + layout.weight_index(),
                           rows.values() + layout.state_index(), rows.stride(), in.distinct,
                           config_.vec_size, step.stream);
  return absl::OkStatus();
}

absl::Status EmbeddingLayer::BringUp(PassTable& rows, DeviceContext& device) {
  if (!defers_updates()) return absl::OkStatus();
  CISTERN_ASSIGN_OR_RETURN(const float* sizes, SizesOn(device));
  const ValueLayout& layout = rows.layout();
  op::ApplyDeferredUpdates(layout.rule(), sizes, step_sizes_.fading_steps(), step_sizes_.step(),
                           step_sizes_.step(), nullptr, rows.values() + layout.weight_index(),
                           rows.values() + layout.state_index(), rows.stride(), rows.rows(),
                           config_.vec_size, device.stream());
  return absl::OkStatus();
}

size_t EmbeddingLayer::ScratchFloats(const DeviceBatch& batch) const {
  const size_t dim = config_.vec_size, distinct = moved(batch).distinct;
  size_t floats =
      std::max(op::AddRowL2ScratchFloats(distinct), op::SumScratchFloats(distinct * dim));
  for (const DeviceSparseBatch* in : {&batch.sparse[config_.input], &moved(batch)}) {
    floats = std::max(floats,
                      op::EmbeddingPoolBackwardScratchFloats(in->occurrences, in->distinct, dim));
  }
  return floats;
}

absl::Status EmbeddingLayer::Reserve(const DeviceBatch& batch, DeviceContext& device) {
  // An allocation waits for the device, so on a GPU the memory holds somewhat larger batches too.
  const auto grow = [&device](size_t floats, DeviceFloats* memory) {
    if (floats <= memory->size()) return absl::OkStatus();
    const size_t margin = device.kind() == DeviceKind::kCpu ? 0 : floats / 8;
    return memory->Grow(floats + margin, device, "embedding gradients");
  };
  CISTERN_RETURN_IF_ERROR(grow(moved(batch).distinct * config_.vec_size, &gradients_));
  return grow(ScratchFloats(batch), &scratch_);
}

absl::Status EmbeddingLayer::ReserveExchange(const DeviceBatch& batch, DeviceContext& device) {
  if (batch.exchanged.empty()) return absl::OkStatus();
  const DeviceExchange& rows = batch.exchanged[config_.input];
  CISTERN_RETURN_IF_ERROR(taken_.Grow(TotalOf(rows.taken) * config_.vec_size, device, "exchanges"));
  return given_.Grow(TotalOf(rows.given) * config_.vec_size, device, "exchanges");
}

bool EmbeddingLayer::HasRoom(const DeviceBatch& batch) const {
  const DeviceExchange& rows = batch.exchanged[config_.input];
  const auto holds = [&](const DeviceFloats& memory, size_t count) {
    return count * config_.vec_size <= memory.size();
  };
  return holds(gradients_, rows.served.distinct) && ScratchFloats(batch) <= scratch_.size() &&
         holds(taken_, TotalOf(rows.taken)) && holds(given_, TotalOf(rows.given)) &&
         (sizes_.size() == 0 || step_sizes_.size() + step_sizes_.step_floats() < sizes_.size());
}

void EmbeddingLayer::Exchange(const float* from, absl::Span<const uint32_t> send, float* to,
                              absl::Span<const uint32_t> receive, const Step& step) const {
  if (!step.peers->status.ok()) return;
  std::vector<size_t> send_bytes, receive_bytes;
  const size_t row_bytes = config_.vec_size * sizeof(float);
  for (const uint32_t rows : send) send_bytes.push_back(rows * row_bytes);
  for (const uint32_t rows : receive) receive_bytes.push_back(rows * row_bytes);
  step.peers->status =
      step.peers->communicator.AllToAll(from, send_bytes, to, receive_bytes, step.stream);
}

void EmbeddingLayer::TakeRows(const Step& step) {
  const DeviceExchange& rows = exchanged(step);
  PoolRows(table(step), rows.served, 0, TotalOf(rows.given), 1, op::Pool::kSum, given_.data(),
           config_.vec_size, step.stream);
  Exchange(given_.data(), rows.given, taken_.data(), rows.taken, step);
}

void EmbeddingLayer::ReturnGradients(const Step& step) {
  const DeviceExchange& rows = exchanged(step);
  Exchange(taken_.data(), rows.taken, given_.data(), rows.given, step);
}

void EmbeddingLayer::SumGradients(const Step& step) {
  PoolBackward(given_.data(), config_.vec_size, exchanged(step).served, op::Pool::kSum, 1,
               gradients_.data(), /*final=*/true, step.stream);
  GradientsMade(step);
}

void EmbeddingLayer::PoolBackward(op::ConstValues dout, size_t dout_stride,
                                  const DeviceSparseBatch& in, op::Pool pool, size_t slots,
                                  float* made, bool final, Stream& stream) {
  squares_summed_ = final && square_sum_ != nullptr && !changes_gradients();
  op::EmbeddingPoolBackward(dout, dout_stride, in.offsets, pool, in.segment_offsets,
                            in.segment_outputs, in.occurrences, made,
                            squares_summed_ ? square_sum_ : nullptr, in.distinct, slots,
                            config_.vec_size, scratch_.data(), stream);
}

void EmbeddingLayer::Pool(const float* weights, size_t stride, const DeviceSparseBatch& in,
                          const uint32_t* offsets, op::Pool pool, op::Values out, size_t out_stride,
                          size_t b, size_t slots, size_t dim, Stream& stream) {
  if (in.weights == nullptr) {
    return op::EmbeddingPool(weights, stride, in.rows, offsets, pool, out, out_stride, b, slots,
                             dim, stream);
  }
  op::WeightedPool(weights, stride, in.rows, FactorsOf(in, pool), offsets, out, out_stride, b,
                   slots, dim, stream);
}

void EmbeddingLayer::PoolRows(const PassTable& rows, const DeviceSparseBatch& in, size_t first,
                              size_t size, size_t slots, op::Pool pool, op::Values out,
                              size_t out_stride, Stream& stream) const {
  Pool(rows.values() + rows.layout().weight_index(), rows.stride(), in, in.offsets + first * slots,
       pool, out, out_stride, size, slots, config_.vec_size, stream);
}

void EmbeddingLayer::Forward(const Step& step) {
  const DeviceSparseBatch& in = sparse(step);
  if (step.peers == nullptr) {
    return PoolRows(table(step), in, step.first, step.size, slots_, pool(), output().value(),
                    output_storage()->stride(), step.stream);
  }
  Pool(taken_.data(), config_.vec_size, in, in.offsets + step.first * slots_, pool(),
       output().value(), output_storage()->stride(), step.size, slots_, config_.vec_size,
       step.stream);
}

void EmbeddingLayer::Backward(const Step& step) {
  const DeviceSparseBatch& in = sparse(step);
  float* const made = step.peers == nullptr ? gradients_.data() : taken_.data();
  if (in.weights == nullptr) {
    PoolBackward(output().grad(), output_storage()->stride(), in, pool(), slots_, made,
                 /*final=*/step.peers == nullptr, step.stream);
  } else {
    squares_summed_ = false;
    op::WeightedPoolBackward(output().grad(), output_storage()->stride(), FactorsOf(in, pool()),
                             in.segment_offsets, in.segment_outputs, in.segment_places, made,
                             in.distinct, slots_, config_.vec_size, step.stream);
  }
  if (step.peers == nullptr) GradientsMade(step);
}

void EmbeddingLayer::AddL2(float l2, double* square_sum, const Step& step) {
  const DeviceSparseBatch& in = moved(step);
  const PassTable& rows = table(step);
  op::AddRowL2({l2, step.loss_scale}, in.segment_rows, rows.values() + rows.layout().weight_index(),
               rows.stride(), gradients_.data(), square_sum, in.distinct, config_.vec_size,
               scratch_.data(), step.stream);
}

void EmbeddingLayer::SumOfSquares(double* sum, const Step& step) {
  if (squares_summed_) return;
  op::SumOfSquares(gradients_.data(), sum, moved(step).distinct * config_.vec_size, scratch_.data(),
                   step.stream);
}

void EmbeddingLayer::Update(const Step& step, double lr_scale) {
  const OptimizerConfig& optimizer = config_.optimizer;
  if (config_.sums_gradients) {
    op::Scale(static_cast<float>(step.all()), gradients_.data(),
              moved(step).distinct * config_.vec_size, step.stream);
  }
  MoveRows(optimizer.schedule.At(step.number) * lr_scale, step);
  if (defers_updates()) step_sizes_.Advance(step.number, optimizer.schedule, lr_scale);
}

void EmbeddingLayer::MoveRows(double rate, const Step& step) {
  const DeviceSparseBatch& in = moved(step);
  PassTable& rows = table(step);
  const ValueLayout& layout = rows.layout();
  op::SparseUpdate(RuleAtStep(layout.rule(), rate, step.number),
                   StepSize(layout.rule(), rate, step.number), in.segment_rows, gradients_.data(),
                   rows.values() + layout.weight_index(), rows.values() + layout.state_index(),
                   rows.stride(), in.distinct, config_.vec_size, step.scaler, step.stream);
}

}  // namespace cistern::model
