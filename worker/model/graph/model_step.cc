// A training step of one worker: enqueueing it and finishing it.
#include <algorithm>

#include "common/base/check.h"
#include "common/base/log.h"
#include "cuda/op/dense/elementwise.h"
#include "cuda/op/dense/sum.h"
#include "cuda/op/update/dense_update.h"
#include "worker/model/graph/model.h"

namespace cistern::model {

absl::Status Model::Launch(const data::HostBatch& batch, absl::Span<PassTable* const> tables,
                           uint64_t number, double lr_scale,
                           absl::Span<const data::HostBatch* const> next) {
  CISTERN_CHECK(in_flight_num_ < kStepsInFlight);
  CISTERN_RETURN_IF_ERROR(CheckBatch(batch, tables));
  stream_.set_product_precision(ProductsOf(config_));  // models can share a device
  if ((batch.size == 0 && !peers_) || batch.size > config_.solver.batchsize) {
    return absl::InvalidArgumentError(absl::StrCat("a training batch has ", batch.size,
                                                   " samples; solver.batchsize is ",
                                                   config_.solver.batchsize));
  }
  CISTERN_ASSIGN_OR_RETURN(const DeviceBatch view, stage_.View(batch));
  // An allocation waits for the running steps, which never end if a peer has died. The communicator
  // waits with a deadline instead.
  if (peers_ && in_flight_num_ > 0 && !HasRoom(view, next)) {
    CISTERN_RETURN_IF_ERROR(peers_->communicator.Wait(stream_));
  }
  for (EmbeddingLayer* embedding : graph_->live_embeddings()) {
    CISTERN_RETURN_IF_ERROR(embedding->ReserveExchange(view, device_));
    CISTERN_RETURN_IF_ERROR(embedding->Reserve(view, device_));
  }
  const float* scale = scaling_ == op::LossScaling::kNone ? nullptr : &scaler_.data()->loss_scale;
  const Step step = {.batch = view,
                     .size = batch.size,
                     .tables = tables,
                     .number = number,
                     .parameters = parameters_,
                     .scratch = graph_->scratch(),
                     .scaler = scaler_.data(),
                     .loss_scale = scale,
                     .stream = stream_,
                     .side = *side_,
                     .peers = peers_ ? &*peers_ : nullptr};
  for (EmbeddingLayer* embedding : graph_->live_embeddings()) {
    CISTERN_RETURN_IF_ERROR(embedding->ApplyDeferred(step, lr_scale, device_));
  }
  InFlight& place = in_flight_[(first_in_flight_ + in_flight_num_) % kStepsInFlight];
  auto* scaler = static_cast<op::GradientScaler*>(place.scaler.data());
  Event& begin = place.begin.front();
  if (peers_) {
    begin.Record(stream_);
    ComputeShared(step, lr_scale, scaler);
  } else {
    Enqueue(
        kAll, stream_, [&] { Compute(step, lr_scale, scaler); }, &begin);
  }
  place.number = number;
  if (peers_) CISTERN_RETURN_IF_ERROR(peers_->status);
  place.done.front().Record(stream_);
  ++in_flight_num_;
  stage_.Release();
  CISTERN_RETURN_IF_ERROR(stage_.Begin(next));
  return stream_.status().ok() ? absl::OkStatus() : stream_.Wait();  // which says what failed
}

void Model::Enqueue(Part part, Stream& stream, const std::function<void()>& enqueue, Event* begin) {
  if (!config_.solver.cuda_graph) {
    if (begin != nullptr) begin->Record(stream);
    return enqueue();
  }
  WorkCapture& capture = captures_[part];
  const bool was_ok = capture.status().ok();
  capture.Run(stream, enqueue, &side_->stream(), begin);
  if (was_ok && !capture.status().ok() && stream.status().ok()) {
    LogWarning(absl::StrCat("steps run without a CUDA graph: ", capture.status().message()));
  }
}

uint64_t Model::graphs_launched() const {
  uint64_t graphs = 0;
  for (const WorkCapture& capture : captures_) graphs += capture.graphs_launched();
  return graphs;
}

uint64_t Model::graphs_built() const {
  uint64_t graphs = 0;
  for (const WorkCapture& capture : captures_) graphs += capture.graphs_built();
  return graphs;
}

void Model::Compute(const Step& step, double lr_scale, op::GradientScaler* scaler) {
  BeginStep(step);
  graph_->Forward(step);
  graph_->loss().Compute(step, sum(kLoss), scratch_.data());
  graph_->Backward(step);
  FinishEmbeddings(step);
  FinishDense(step);
  side_->Join(stream_);
  UpdateScalerAndRows(step, lr_scale, scaler);
}

void Model::BeginStep(const Step& step) {
  parameters_.StartStep(stream_);
  if (!graph_->has_dead_parameters() && step.size > 0) return;
  op::Fill(0, parameters_.grads(), parameters_.count(), stream_);
}

void Model::UpdateScalerAndRows(const Step& step, double lr_scale, op::GradientScaler* scaler) {
  UpdateScaler(step);
  parameters_.Advance(scaler_.data(), stream_);
  Update(step, lr_scale, scaler);
}

// Updates the gradient scaler from the sums. The updates of rows and parameters come after it.
void Model::UpdateScaler(const Step& step) {
  const auto& config = graph_->loss_config().own<LossConfig>();
  const double lambda = config.lambda / static_cast<double>(step.all());
  op::StepRule rule;
  rule.embedding_penalty = config_.cistern.embedding_l2 / 2;
  rule.dense_penalty = config.regularizer == "L2" ? lambda / 2 : lambda;
  if (config.regularizer.empty()) rule.dense_penalty = 0;
  rule.clip_norm = config_.cistern.clip_norm;
  rule.stays_closed = !config_.cistern.skips_not_finite;
  rule.scaling = scaling_;
  op::UpdateGradientScaler(sums_.data(), graph_->live_embeddings().size(), rule, scaler_.data(),
                           stream_);
}

absl::StatusOr<StepResult> Model::Finish() {
  CISTERN_CHECK(in_flight_num_ > 0);
  InFlight& step = in_flight_[first_in_flight_];
  first_in_flight_ = (first_in_flight_ + 1) % kStepsInFlight;
  --in_flight_num_;
  Event& done = step.done.front();
  // Work that waits for a dead peer never ends; the communicator waits with a deadline.
  CISTERN_RETURN_IF_ERROR(peers_ ? peers_->communicator.Wait(done, stream_) : done.Wait());
  CISTERN_RETURN_IF_ERROR(stream_.status());
  const auto scaler = *static_cast<const op::GradientScaler*>(step.scaler.data());
  last_scaler_ = scaler;
  CISTERN_ASSIGN_OR_RETURN(const double ms, done.MillisecondsSince(step.begin.front()));
  StepResult result = {scaler.loss, scaler.grad_norm, scaler.updates_allowed == 0, ms / 1000};
  if (!result.skipped || scaler.overflowed != 0 || config_.cistern.skips_not_finite) return result;
  in_flight_num_ = 0;  // the later steps have not updated anything either
  CISTERN_RETURN_IF_ERROR(peers_ ? peers_->communicator.Wait(stream_) : stream_.Wait());
  CISTERN_RETURN_IF_ERROR(ResetScaler());
  return NotFinite(config_, scaler, step.number);
}

// Adds the regularizers and sums the squares of the gradients. The squares are needed at every
// step, with or without clipping, because they also detect gradients that are not finite and must
// not reach the tables.
void Model::FinishEmbeddings(const Step& step) {
  const auto l2 = static_cast<float>(config_.cistern.embedding_l2);
  for (size_t e = 0; e < graph_->live_embeddings().size(); ++e) {
    EmbeddingLayer& embedding = *graph_->live_embeddings()[e];
    if (l2 > 0) embedding.AddL2(l2, sum(kOfEmbeddings + 2 * e), step.Beside());
    embedding.SumOfSquares(sum(kOfEmbeddings + 2 * e + 1), step.Beside());
  }
}

void Model::FinishDense(const Step& step) {
  const auto& config = graph_->loss_config().own<LossConfig>();
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

// Updates rows and parameters, and copies the gradient scaler to the host meanwhile.
void Model::Update(const Step& step, double lr_scale, op::GradientScaler* scaler) {
  const OptimizerConfig& dense = config_.optimizer;
  side_->Fork(stream_);
  for (EmbeddingLayer* embedding : graph_->live_embeddings()) {
    embedding->Update(step.Beside(), lr_scale);
  }
  const double rate = dense.schedule.At(step.number) * lr_scale;
  op::DenseUpdate(RuleAtStep(dense.rule, rate, step.number),
                  StepSize(dense.rule, rate, step.number), parameters_.grads(),
                  parameters_.weights(), parameters_.states(), parameters_.count(), scaler_.data(),
                  stream_);
  parameters_.Round(stream_);
  CopyToHost(scaler_.data(), scaler, sizeof(op::GradientScaler), stream_);
  side_->Join(stream_);
}

}  // namespace cistern::model
