// A training step of several workers: one worker's step (model_step.cc), divided at the exchanges.
//
//   main stream                               side stream
//   ----------------------------------------- fork -------------------------------------------
//   [layers that read no embedding]           rows are gathered, exchanged (AllToAll) and pooled
//   ----------------------------------------- join -------------------------------------------
//   [the other layers, the loss, and backward
//    until embeddings have their gradients]
//   ----------------------------------------- fork -------------------------------------------
//   [the rest of the backward pass]           gradients of rows are exchanged (AllToAll)
//   <---------------------------------------- exchanged_
//   dense gradients are summed (AllReduce)    [those of rows are summed, regularized, squared]
//   ----------------------------------------- join -------------------------------------------
//   the sums are summed (AllReduce)
//   [the gradient scaler and the updates]
//
// Each part in brackets is one CUDA graph (Enqueue). Exchanges are outside of the graphs for two
// reasons: NCCL reads their sizes on the host, and the sizes differ from batch to batch; and an
// exchange through the host waits for the stream. Neither is possible during a capture.
//
// NCCL calls, on either stream, are serialized, and every worker makes them in the order shown
// here: the join orders the backward exchanges after the forward exchange, exchanged_ orders the
// sum of dense gradients after the exchange of row gradients, and the fork of a step orders it
// after the previous step. Therefore one communicator is enough, and no two of its calls wait for
// each other.
#include "cuda/op/dense/elementwise.h"
#include "worker/model/graph/model.h"

namespace cistern::model {

void Model::ComputeShared(const Step& step, double lr_scale, op::GradientScaler* scaler) {
  const Step beside = step.Beside();
  const bool some = step.size > 0;  // false: other workers have all samples of the batch
  const auto ahead = [&] {
    BeginStep(step);
    if (some) graph_->ForwardAhead(step);
  };
  const auto behind = [&] {
    if (some) graph_->BackwardRest(step);
    ShareStatistics(step);
  };

  side_->Fork(stream_);
  if (graph_->works_ahead()) Enqueue(kAhead, stream_, ahead);
  for (EmbeddingLayer* embedding : graph_->live_embeddings()) {
    embedding->TakeRows(beside);
    if (some) embedding->Forward(beside);
  }
  side_->Join(stream_);

  Enqueue(kToRows, stream_, [&] {
    if (!graph_->works_ahead()) ahead();
    if (some) {
      graph_->ForwardRest(step);
      graph_->loss().Compute(step, sum(kLoss), scratch_.data());
      graph_->BackwardToRows(step);
    } else {
      ZeroOnDevice(sum(kLoss), sizeof(double), stream_);
    }
    if (!graph_->works_behind()) behind();
  });

  side_->Fork(stream_);
  if (graph_->works_behind()) Enqueue(kBehind, stream_, behind);
  for (EmbeddingLayer* embedding : graph_->live_embeddings()) {
    if (some) embedding->Backward(beside);
    embedding->ReturnGradients(beside);
  }
  exchanged_.front().Record(side_->stream());
  Enqueue(kRows, side_->stream(), [&] {
    for (EmbeddingLayer* embedding : graph_->live_embeddings()) embedding->SumGradients(beside);
    FinishEmbeddings(beside);
  });

  exchanged_.front().MakeWait(stream_);
  SumOverPeers(parameters_.grads(), parameters_.count(), ElementType::kFloat);
  const size_t running = parameters_.running_count();
  if (running > 0) {
    SumOverPeers(parameters_.next_running({0, running}), running, ElementType::kFloat);
  }
  side_->Join(stream_);
  // This includes the dense sums, which are not set yet: FinishDense overwrites them, with the same
  // values on all workers.
  SumOverPeers(sums_.data(), sums(), ElementType::kDouble);
  Enqueue(kUpdates, stream_, [&] {
    FinishDense(step);
    UpdateScalerAndRows(step, lr_scale, scaler);
  });
}

bool Model::HasRoom(const DeviceBatch& batch, absl::Span<const data::HostBatch* const> next) const {
  for (const EmbeddingLayer* embedding : graph_->live_embeddings()) {
    if (!embedding->HasRoom(batch)) return false;
  }
  return stage_.HasRoom(next);
}

// Scales the running statistics to this worker's share of the mean over all samples.
void Model::ShareStatistics(const Step& step) {
  const size_t running = parameters_.running_count();
  if (running == 0) return;
  const double share = static_cast<double>(step.size) / static_cast<double>(step.all());
  op::Scale(static_cast<float>(share), parameters_.next_running({0, running}), running, stream_);
}

void Model::SumOverPeers(void* data, size_t count, ElementType type) {
  if (!peers_->status.ok()) return;
  peers_->status = peers_->communicator.AllReduce(data, count, type, stream_);
}

}  // namespace cistern::model
