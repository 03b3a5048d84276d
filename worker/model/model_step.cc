// A training step: what is enqueued for it, alone or with other workers, and how it ended.
#include <algorithm>

#include "common/check.h"
#include "common/log.h"
#include "cuda/op/dense_update.h"
#include "cuda/op/elementwise.h"
#include "cuda/op/sum.h"
#include "worker/model/graph_model.h"

namespace cistern {

absl::Status GraphModel::Launch(const Batch& batch, absl::Span<PassTable* const> tables,
                                uint64_t number, double lr_scale, const Batch* next) {
  CISTERN_CHECK(in_flight_num_ < kStepsInFlight);
  CISTERN_RETURN_IF_ERROR(CheckBatch(batch, tables));
  stream_.set_product_precision(ProductsOf(config_));  // models may share a device
  if ((batch.size == 0 && !peers_) || batch.size > config_.solver.batchsize) {
    return absl::InvalidArgumentError(absl::StrCat("a training batch of ", batch.size,
                                                   " samples; solver.batchsize is ",
                                                   config_.solver.batchsize));
  }
  CISTERN_ASSIGN_OR_RETURN(const BatchView view, stage_.View(batch));
  for (EmbeddingLayer* embedding : graph_->live_embeddings()) {
    const uint32_t input = embedding->config().input;
    const SparseView& rows = peers_ ? view.exchanged[input].served : view.sparse[input];
    CISTERN_RETURN_IF_ERROR(embedding->ReserveExchange(view, device_));
    CISTERN_RETURN_IF_ERROR(embedding->Reserve(rows.distinct, device_));
  }
  const float* scale = scaling_ == op::LossScaling::kNone ? nullptr : &gate_.data()->loss_scale;
  const Step step = {view,
                     0,
                     batch.size,
                     tables,
                     number,
                     parameters_,
                     graph_->scratch(),
                     gate_.data(),
                     scale,
                     stream_,
                     *side_,
                     peers_ ? &*peers_ : nullptr};
  for (EmbeddingLayer* embedding : graph_->live_embeddings()) {
    CISTERN_RETURN_IF_ERROR(embedding->MakeUp(step, lr_scale, device_));
  }
  InFlight& place = in_flight_[(first_in_flight_ + in_flight_num_) % kStepsInFlight];
  auto* gate = static_cast<op::StepGate*>(place.gate.data());
  // A graph would hold exchanges of other sizes at every step.
  if (config_.solver.cuda_graph && !peers_) {
    const bool was_ok = capture_.status().ok();
    capture_.Run(stream_, [&] { Compute(step, lr_scale, gate); });
    if (was_ok && !capture_.status().ok()) {
      LogWarning(absl::StrCat("steps run without a CUDA graph: ", capture_.status().message()));
    }
  } else {
    Compute(step, lr_scale, gate);
  }
  place.number = number;
  if (peers_) CISTERN_RETURN_IF_ERROR(peers_->status);
  place.done.front().Record(stream_);
  ++in_flight_num_;
  stage_.Release();
  if (next != nullptr) CISTERN_RETURN_IF_ERROR(stage_.Begin(*next));
  return stream_.status();
}

void GraphModel::Compute(const Step& step, double lr_scale, op::StepGate* gate) {
  parameters_.StartStep(stream_);
  if (peers_) {
    for (EmbeddingLayer* embedding : graph_->live_embeddings()) embedding->TakeRows(step);
  }
  ForwardAndBackward(step);
  if (peers_) {
    GatherGradients(step);
  } else {
    FinishEmbeddings(step);
  }
  FinishDense(step);
  side_->Join(stream_);
  Judge(step, gate);
  ScaleGradients(step);
  parameters_.Advance(gate_.data(), stream_);
  Update(step, lr_scale);
}

void GraphModel::ForwardAndBackward(const Step& step) {
  if (graph_->has_dead_parameters() || step.size == 0) {
    op::Fill(0, parameters_.grads(), parameters_.count(), stream_);
  }
  if (step.size == 0) {  // other workers have all of the batch
    op::Fill(0, reinterpret_cast<float*>(sum(kLoss)), sizeof(double) / sizeof(float), stream_);
    return;
  }
  graph_->Forward(step);
  const Tensor& logit = graph_->logit();
  graph_->loss().Compute(logit.value(), step.batch.label, step.size, step.all(), sum(kLoss),
                         {logit.grad(), step.loss_scale}, scratch_.data(), stream_);
  graph_->Backward(step);
}

void GraphModel::GatherGradients(const Step& step) {
  side_->Join(stream_);
  for (EmbeddingLayer* embedding : graph_->live_embeddings()) embedding->GiveGradients(step);
  side_->Fork(stream_);
  FinishEmbeddings(step);
  side_->Join(stream_);
  // With places that are not written yet, and that FinishDense writes for all workers alike.
  SumOverPeers(sums_.data(), sums(), ElementType::kDouble);
  SumOverPeers(parameters_.grads(), parameters_.count(), ElementType::kFloat);
  const size_t running = parameters_.running_count();
  if (running == 0) return;
  float* statistics = parameters_.next_running({0, running});
  const double share = static_cast<double>(step.size) / static_cast<double>(step.all());
  op::Scale(static_cast<float>(share), statistics, running, stream_);
  SumOverPeers(statistics, running, ElementType::kFloat);
}

void GraphModel::SumOverPeers(void* data, size_t count, ElementType type) {
  if (!peers_->status.ok()) return;
  peers_->status = peers_->communicator.AllReduce(data, count, type, stream_);
}

// What the sums say goes to the host; the updates follow it.
void GraphModel::Judge(const Step& step, op::StepGate* gate) {
  const LayerConfig& config = graph_->loss_config();
  const double lambda = config.lambda / static_cast<double>(step.all());
  op::StepRule rule;
  rule.embedding_penalty = config_.cistern.embedding_l2 / 2;
  rule.dense_penalty = config.regularizer == "L2" ? lambda / 2 : lambda;
  if (config.regularizer.empty()) rule.dense_penalty = 0;
  rule.clip_norm = config_.cistern.clip_norm;
  rule.stays_closed = !config_.cistern.skips_not_finite;
  rule.scaling = scaling_;
  op::JudgeStep(sums_.data(), graph_->live_embeddings().size(), rule, gate_.data(), stream_);
  CopyToHost(gate_.data(), gate, sizeof(op::StepGate), stream_);
}

absl::StatusOr<StepResult> GraphModel::Finish() {
  CISTERN_CHECK(in_flight_num_ > 0);
  InFlight& step = in_flight_[first_in_flight_];
  first_in_flight_ = (first_in_flight_ + 1) % kStepsInFlight;
  --in_flight_num_;
  if (peers_) CISTERN_RETURN_IF_ERROR(peers_->communicator.Wait(stream_));
  CISTERN_RETURN_IF_ERROR(step.done.front().Wait());
  CISTERN_RETURN_IF_ERROR(stream_.status());
  const auto gate = *static_cast<const op::StepGate*>(step.gate.data());
  last_gate_ = gate;
  StepResult result = {gate.loss, gate.grad_norm, gate.open == 0};
  if (!result.skipped || gate.overflowed != 0 || config_.cistern.skips_not_finite) return result;
  in_flight_num_ = 0;  // the others have done nothing, either
  CISTERN_RETURN_IF_ERROR(stream_.Wait());
  CISTERN_RETURN_IF_ERROR(OpenGate());
  return NotFinite(config_, gate, step.number);
}

// Regularizers, and the squares of all gradients of the step, which are taken at every step,
// clipped or not: they are also what keeps a gradient that is not finite away from the tables.
void GraphModel::FinishEmbeddings(const Step& step) {
  const auto l2 = static_cast<float>(config_.cistern.embedding_l2);
  for (size_t e = 0; e < graph_->live_embeddings().size(); ++e) {
    EmbeddingLayer& embedding = *graph_->live_embeddings()[e];
    if (l2 > 0) embedding.AddL2(l2, sum(kOfEmbeddings + 2 * e), step.Beside());
    embedding.SumOfSquares(sum(kOfEmbeddings + 2 * e + 1), step.Beside());
  }
}

void GraphModel::FinishDense(const Step& step) {
  const LayerConfig& config = graph_->loss_config();
  const auto lambda = static_cast<float>(config.lambda / static_cast<double>(step.all()));
  const float* weights = parameters_.weights();
  float* grads = parameters_.grads();
  const size_t count = parameters_.count();
  if (config.regularizer == "L2") {
    op::AddL2Gradient({lambda, step.loss_scale}, weights, grads, count, stream_);
    op::SumOfSquares(weights, sum(kDensePenalty), count, scratch_.data(), stream_);
  } else if (config.regularizer == "L1") {
    op::AddL1Gradient({lambda, step.loss_scale}, weights, grads, count, stream_);
    op::SumOfMagnitudes(weights, sum(kDensePenalty), count, scratch_.data(), stream_);
  }
  op::SumOfSquares(grads, sum(kDenseSquares), count, scratch_.data(), stream_);
}

void GraphModel::ScaleGradients(const Step& step) {
  if (config_.cistern.clip_norm == 0 && step.loss_scale == nullptr) return;
  op::ScaleByGate(gate_.data(), parameters_.grads(), parameters_.count(), stream_);
  for (EmbeddingLayer* embedding : graph_->live_embeddings()) {
    embedding->ScaleGradients(step);
  }
}

void GraphModel::Update(const Step& step, double lr_scale) {
  const OptimizerConfig& dense = config_.optimizer;
  side_->Fork(stream_);
  for (EmbeddingLayer* embedding : graph_->live_embeddings()) {
    embedding->Update(step.Beside(), lr_scale);
  }
  op::DenseUpdate(dense.rule,
                  StepSize(dense.rule, dense.schedule.At(step.number) * lr_scale, step.number),
                  parameters_.grads(), parameters_.weights(), parameters_.states(),
                  parameters_.count(), gate_.data(), stream_);
  parameters_.Round(stream_);
  side_->Join(stream_);
}

}  // namespace cistern
