#include "worker/model/graph/model.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/value/schema.h"
#include "cuda/op/dense/elementwise.h"
#include "cuda/op/dense/sum.h"

namespace cistern::model {

Model::Model(const ModelConfig& config, DeviceContext& device, Communicator* peers)
    : config_(config),
      device_(device),
      stream_(device.stream()),
      scaling_(ScalingOf(config)),
      stage_(device) {
  if (peers != nullptr) peers_.emplace(StepPeers{*peers, absl::OkStatus()});
}

absl::Status Model::Build() {
  absl::StatusOr<std::unique_ptr<Graph>> graph = Graph::Create(config_, &parameters_);
  if (!graph.ok()) return AddContext(graph.status(), config_.path);
  graph_ = *std::move(graph);
  CISTERN_RETURN_IF_ERROR(CheckMemory());
  CISTERN_RETURN_IF_ERROR(AddContext(Allocate(), config_.path));
  for (const EmbeddingConfig& embedding : config_.embeddings) {
    *schema_.add_tables() = embedding.spec;
  }
  for (const v1::DenseTableSpec& table : parameters_.tables()) {
    *schema_.add_dense_tables() = table;
  }
  return AddContext(CheckSchema(schema_), config_.path);
}

absl::Status Model::Allocate() {
  CISTERN_ASSIGN_OR_RETURN(side_, SideStream::Create(device_));
  CISTERN_ASSIGN_OR_RETURN(Event exchanged, Event::Create(device_.kind()));
  exchanged_.push_back(std::move(exchanged));
  CISTERN_RETURN_IF_ERROR(graph_->Allocate(device_));
  CISTERN_RETURN_IF_ERROR(graph_->loss().Allocate(device_));
  std::optional<uint64_t> seed;
  if (config_.draws_weights) seed = MixKey(config_.solver.seed ^ HashBytes("dense"));
  CISTERN_RETURN_IF_ERROR(
      parameters_.Allocate(config_.optimizer.rule, seed, ActivationsOf(config_), device_));
  const size_t scratch = std::max(graph_->loss().ScratchFloats(graph_->planned_batch()),
                                  op::SumScratchFloats(parameters_.count()));
  CISTERN_RETURN_IF_ERROR(scratch_.Grow(scratch, device_, "scratch"));
  CISTERN_RETURN_IF_ERROR(
      predictions_.Grow(graph_->planned_batch() * config_.data.label_dim, device_, "predictions"));
  if (ActivationsOf(config_) != ElementType::kFloat) {
    CISTERN_RETURN_IF_ERROR(logits_.Grow(graph_->planned_batch() * graph_->logit().shape.columns(),
                                         device_, "predictions"));
  }
  CISTERN_RETURN_IF_ERROR(sums_.Grow(sums(), device_, "sums"));
  // On a GPU the sum in the backward pass saves a pass over the gradients.
  const bool sums_backward =
      device_.kind() != DeviceKind::kCpu && config_.cistern.embedding_l2 == 0;
  for (size_t e = 0; e < graph_->live_embeddings().size() && sums_backward; ++e) {
    graph_->live_embeddings()[e]->SumSquaresBackward(sum(kOfEmbeddings + 2 * e + 1));
  }
  CISTERN_RETURN_IF_ERROR(scaler_.Grow(1, device_, "sums"));
  for (InFlight& step : in_flight_) {
    CISTERN_ASSIGN_OR_RETURN(
        step.scaler, device_.pool().Take(MemoryPlace::kPinned, sizeof(op::GradientScaler), "sums"));
    for (std::vector<Event>* events : {&step.begin, &step.done}) {
      CISTERN_ASSIGN_OR_RETURN(Event event, Event::Create(device_.kind()));
      events->push_back(std::move(event));
    }
  }
  last_scaler_ = FirstScaler(config_);
  return ResetScaler();
}

// Reports a batch size that is far too large, for example a typo, before the allocation fails or
// the machine starts to swap.
absl::Status Model::CheckMemory() const {
  constexpr double kMiB = 1 << 20;
  const StepMemory step = graph_->memory();
  const double floats = static_cast<double>(step.values) + static_cast<double>(step.gradients) +
                        static_cast<double>(step.scratch);
  const double wanted = floats * sizeof(float) / kMiB;
  const double there = static_cast<double>(device_.pool().cap_bytes()) / kMiB;
  if (wanted <= there) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrFormat("%s: a step of %d samples needs %.1f MiB, but this %s has %.1f MiB: lower "
                      "solver.batchsize or solver.batchsize_eval",
                      config_.path, graph_->planned_batch(), wanted,
                      device_.kind() == DeviceKind::kCpu ? "machine" : "GPU", there));
}

absl::Status Model::ResetScaler() {
  op::GradientScaler fresh;
  fresh.loss_scale = last_scaler_.loss_scale;
  fresh.good_steps = last_scaler_.good_steps;
  CopyToDevice(&fresh, scaler_.data(), sizeof(fresh), stream_);
  return stream_.Wait();
}

absl::Status Model::SetLossScale(const LossScale& at) {
  CISTERN_CHECK(in_flight_num_ == 0);
  if (scaling_ != op::LossScaling::kDynamic || at.scale == 0) return absl::OkStatus();
  CISTERN_ASSIGN_OR_RETURN(last_scaler_, ScalerWith(at));
  return ResetScaler();
}

v1::StepClock Model::clock() const {
  v1::StepClock clock;
  for (const auto& embedding : graph_->embeddings()) {
    v1::RateHistory* rates = clock.add_rates();
    if (!embedding->defers_updates()) continue;
    *rates = embedding->step_sizes().history();
    clock.set_step(std::max(clock.step(), embedding->step_sizes().step()));
  }
  return clock.step() == 0 ? v1::StepClock() : clock;
}

void Model::SetClock(const v1::StepClock& clock) {
  for (size_t e = 0; e < graph_->embeddings().size(); ++e) {
    EmbeddingLayer& embedding = *graph_->embeddings()[e];
    const bool known = e < static_cast<size_t>(clock.rates_size());
    if (!embedding.defers_updates()) continue;
    embedding.SetClock(
        known ? clock.rates(static_cast<int>(e)) : v1::RateHistory::default_instance(),
        clock.step());
  }
}

absl::Status Model::BringUp(absl::Span<PassTable* const> tables) {
  for (const auto& embedding : graph_->embeddings()) {
    CISTERN_RETURN_IF_ERROR(embedding->BringUp(*tables[embedding->index()], device_));
  }
  return stream_.status().ok() ? absl::OkStatus() : stream_.Wait();  // which says what failed
}

absl::Status Model::Predict(const data::HostBatch& batch, absl::Span<PassTable* const> tables,
                            std::vector<float>* predictions, std::vector<float>* logits) {
  CISTERN_RETURN_IF_ERROR(CheckBatch(batch, tables));
  stream_.set_product_precision(ProductsOf(config_));
  const size_t labels = config_.data.label_dim, most = graph_->planned_batch();
  const Tensor& logit = graph_->logit();
  const size_t columns = logit.shape.columns();
  predictions->resize(batch.size * labels);
  if (logits != nullptr) logits->resize(batch.size * columns);
  CISTERN_ASSIGN_OR_RETURN(const DeviceBatch view, stage_.View(batch, BatchStage::Use::kPredict));
  const auto step_of = [&](size_t first, size_t size) -> Step {
    return {.batch = view,
            .first = first,
            .size = size,
            .tables = tables,
            .parameters = parameters_,
            .scratch = graph_->scratch(),
            .stream = stream_,
            .side = *side_,
            .peers = peers_ ? &*peers_ : nullptr};
  };
  for (EmbeddingLayer* embedding : graph_->live_embeddings()) {
    if (!peers_) break;
    CISTERN_RETURN_IF_ERROR(embedding->ReserveExchange(view, device_));
    embedding->TakeRows(step_of(0, batch.size));
    CISTERN_RETURN_IF_ERROR(peers_->status);
  }
  for (size_t first = 0; first < batch.size; first += most) {
    const size_t size = std::min(most, batch.size - first);
    graph_->Forward(step_of(first, size), &Layer::Infer);
    graph_->loss().Predict(size, predictions_.data(), stream_);
    CopyToHost(predictions_.data(), predictions->data() + first * labels,
               size * labels * sizeof(float), stream_);
    if (logits == nullptr) continue;
    const bool floats = logit.value().type == ElementType::kFloat;
    if (!floats) op::Convert(logit.value(), logits_.data(), size * columns, stream_);
    CopyToHost(floats ? logit.value().data : logits_.data(), logits->data() + first * columns,
               size * columns * sizeof(float), stream_);
  }
  stage_.Release();
  return stream_.Wait();
}

absl::Status Model::ShiftLogits(double shift) {
  const std::optional<Parameter> bias = parameters_.LogitBias();
  if (!bias) {
    return absl::InvalidArgumentError(
        absl::StrCat(config_.path,
                     ": cistern.calibrate needs an InnerProduct layer with num_output 1 and a "
                     "bias_value: the one that makes the log-odds, or a part of their sum"));
  }
  CISTERN_ASSIGN_OR_RETURN(std::vector<float> values, ReadDense(0));
  const size_t columns = values.size() / parameters_.count();
  values[bias->offset * columns] += static_cast<float>(shift);
  return WriteDense(0, values);
}

absl::Status Model::CheckBatch(const data::HostBatch& batch,
                               absl::Span<PassTable* const> tables) const {
  const DataConfig& data = config_.data;
  CISTERN_CHECK(tables.size() == config_.embeddings.size());
  if (batch.label.size() != batch.size * data.label_dim ||
      batch.dense.size() != batch.size * data.dense_dim ||
      batch.sparse.size() != data.sparse.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a batch of ", batch.size, " samples holds ", batch.label.size(), " labels, ",
        batch.dense.size(), " dense features and ", batch.sparse.size(),
        " sparse inputs; the model needs ", data.label_dim, " labels and ", data.dense_dim,
        " dense features per sample, and ", data.sparse.size(), " sparse inputs"));
  }
  for (size_t i = 0; i < data.sparse.size(); ++i) {
    if (batch.sparse[i].slot_num == data.sparse[i].places()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "sparse input '", data.sparse[i].top, "' of a batch has ", batch.sparse[i].slot_num,
        " places; the model needs ", data.sparse[i].places()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Model>> Model::Create(const ModelConfig& config,
                                                     DeviceContext& device, Communicator* peers) {
  auto model = std::unique_ptr<Model>(new Model(config, device, peers));
  CISTERN_RETURN_IF_ERROR(model->Build());
  return model;
}

}  // namespace cistern::model
