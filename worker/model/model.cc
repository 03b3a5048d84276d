#include "worker/model/model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "absl/strings/str_format.h"
#include "common/check.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/schema.h"
#include "cuda/op/dense_update.h"
#include "cuda/op/elementwise.h"
#include "cuda/op/sum.h"
#include "cuda/work_capture.h"
#include "worker/model/graph.h"

namespace cistern {
namespace {

class GraphModel : public Model {
 public:
  GraphModel(const ModelConfig& config, DeviceContext& device, Communicator* peers)
      : config_(config),
        device_(device),
        stream_(device.stream()),
        scaling_(ScalingOf(config)),
        stage_(device) {
    if (peers != nullptr) peers_.emplace(StepPeers{*peers, absl::OkStatus()});
  }
  absl::Status Build();

  const v1::Schema& schema() const override { return schema_; }
  absl::Status Launch(const Batch& batch, absl::Span<PassTable* const> tables, uint64_t step,
                      double lr_scale, const Batch* next) override;
  absl::StatusOr<StepResult> Finish() override;
  absl::Status Predict(const Batch& batch, absl::Span<PassTable* const> tables,
                       std::vector<float>* predictions, std::vector<float>* logits) override;
  v1::StepClock clock() const override;
  void SetClock(const v1::StepClock& clock) override;
  absl::Status BringUp(absl::Span<PassTable* const> tables) override;
  LossScale loss_scale() const override { return LossScaleOf(last_gate_, scaling_); }
  absl::Status SetLossScale(const LossScale& at) override;
  absl::StatusOr<std::vector<float>> ReadDense(size_t i) const override {
    return parameters_.Read(i, stream_);
  }
  absl::Status WriteDense(size_t i, absl::Span<const float> values) override {
    return AddContext(parameters_.Write(i, values, stream_), config_.path);
  }

 private:
  // The sums of a step, in one array: sums() of them, in the order of op::JudgeStep.
  enum Sum { kLoss, kDensePenalty, kDenseSquares, kOfEmbeddings };
  double* sum(size_t i) { return sums_.data() + i; }
  size_t sums() const { return kOfEmbeddings + 2 * graph_->live_embeddings().size(); }

  absl::Status Allocate();
  absl::Status CheckMemory() const;
  absl::Status CheckBatch(const Batch& batch, absl::Span<PassTable* const> tables) const;
  // Enqueues all of a step; `gate`: where the host reads its verdict.
  void Compute(const Step& step, double lr_scale, op::StepGate* gate);
  void ForwardAndBackward(const Step& step);
  // With peers: gradients and sums become those of all workers.
  void GatherGradients(const Step& step);
  void SumOverPeers(void* data, size_t count, ElementType type);
  void FinishEmbeddings(const Step& step);
  void FinishDense(const Step& step);
  void Judge(const Step& step, op::StepGate* gate);
  void ScaleGradients(const Step& step);
  absl::Status OpenGate();
  void Update(const Step& step, double lr_scale);

  const ModelConfig config_;
  DeviceContext& device_;
  Stream& stream_;
  const op::LossScaling scaling_;
  BatchStage stage_;
  Parameters parameters_;
  std::unique_ptr<Graph> graph_;
  std::optional<SideStream> side_;  // set by Allocate
  std::optional<StepPeers> peers_;
  WorkCapture capture_;
  DeviceFloats scratch_;       // of the loss and of sums over the parameters
  DeviceFloats predictions_;   // [planned_batch, label_dim]
  DeviceBuffer<double> sums_;  // by Sum; then of each live embedding |w|^2 and its squares
  DeviceFloats logits_;        // of Predict, where the graph's are not floats
  DeviceBuffer<op::StepGate> gate_;
  op::StepGate last_gate_;  // of the last step that was finished
  // Steps that are not finished: what their gates held, for the host.
  struct InFlight {
    uint64_t number = 0;
    Memory gate;  // a StepGate, pinned
    std::vector<Event> done;
  };
  std::array<InFlight, kStepsInFlight> in_flight_;
  size_t first_in_flight_ = 0, in_flight_num_ = 0;
  v1::Schema schema_;
};

absl::Status GraphModel::Build() {
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

absl::Status GraphModel::Allocate() {
  CISTERN_ASSIGN_OR_RETURN(side_, SideStream::Create(device_));
  CISTERN_RETURN_IF_ERROR(graph_->Allocate(device_));
  CISTERN_RETURN_IF_ERROR(graph_->loss().Allocate(device_));
  CISTERN_RETURN_IF_ERROR(parameters_.Allocate(config_.optimizer.rule,
                                               MixKey(config_.solver.seed ^ HashBytes("dense")),
                                               ActivationsOf(config_), device_));
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
  CISTERN_RETURN_IF_ERROR(gate_.Grow(1, device_, "sums"));
  for (InFlight& step : in_flight_) {
    CISTERN_ASSIGN_OR_RETURN(
        step.gate, device_.pool().Take(MemoryPlace::kPinned, sizeof(op::StepGate), "sums"));
    CISTERN_ASSIGN_OR_RETURN(Event done, Event::Create(device_.kind()));
    step.done.push_back(std::move(done));
  }
  last_gate_ = FirstGate(config_);
  return OpenGate();
}

// A batch size with a zero too many would otherwise end the process, or the machine's patience.
absl::Status GraphModel::CheckMemory() const {
  constexpr double kGiB = 1 << 30;
  const StepMemory step = graph_->memory();
  const double floats = static_cast<double>(step.values) + static_cast<double>(step.gradients) +
                        static_cast<double>(step.scratch);
  const double wanted = floats * sizeof(float) / kGiB;
  const double there = static_cast<double>(device_.pool().cap_bytes()) / kGiB;
  if (wanted <= there) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "%s: a step of %d samples takes %.1f GiB, and this %s has %.1f GiB: lower "
      "solver.batchsize or solver.batchsize_eval (cistern train --dry-run shows what takes how "
      "much)",
      config_.path, graph_->planned_batch(), wanted,
      device_.kind() == DeviceKind::kCpu ? "machine" : "GPU", there));
}

absl::Status GraphModel::OpenGate() {
  op::StepGate open;
  open.loss_scale = last_gate_.loss_scale;
  open.good_steps = last_gate_.good_steps;
  CopyToDevice(&open, gate_.data(), sizeof(open), stream_);
  return stream_.Wait();
}

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

absl::Status GraphModel::SetLossScale(const LossScale& at) {
  CISTERN_CHECK(in_flight_num_ == 0);
  if (scaling_ != op::LossScaling::kDynamic || at.scale == 0) return absl::OkStatus();
  CISTERN_ASSIGN_OR_RETURN(last_gate_, GateWith(at));
  return OpenGate();
}

v1::StepClock GraphModel::clock() const {
  v1::StepClock clock;
  for (const auto& embedding : graph_->embeddings()) {
    v1::RateHistory* rates = clock.add_rates();
    if (!embedding->makes_up()) continue;
    *rates = embedding->step_sizes().history();
    clock.set_step(std::max(clock.step(), embedding->step_sizes().step()));
  }
  return clock.step() == 0 ? v1::StepClock() : clock;
}

void GraphModel::SetClock(const v1::StepClock& clock) {
  for (size_t e = 0; e < graph_->embeddings().size(); ++e) {
    EmbeddingLayer& embedding = *graph_->embeddings()[e];
    const bool known = e < static_cast<size_t>(clock.rates_size());
    if (!embedding.makes_up()) continue;
    embedding.SetClock(
        known ? clock.rates(static_cast<int>(e)) : v1::RateHistory::default_instance(),
        clock.step());
  }
}

absl::Status GraphModel::BringUp(absl::Span<PassTable* const> tables) {
  for (const auto& embedding : graph_->embeddings()) {
    CISTERN_RETURN_IF_ERROR(embedding->BringUp(*tables[embedding->index()], device_));
  }
  return stream_.status();
}

absl::Status GraphModel::Predict(const Batch& batch, absl::Span<PassTable* const> tables,
                                 std::vector<float>* predictions, std::vector<float>* logits) {
  CISTERN_RETURN_IF_ERROR(CheckBatch(batch, tables));
  stream_.set_product_precision(ProductsOf(config_));
  const size_t labels = config_.data.label_dim, most = graph_->planned_batch();
  const Tensor& logit = graph_->logit();
  const size_t columns = logit.shape.columns();
  predictions->resize(batch.size * labels);
  if (logits != nullptr) logits->resize(batch.size * columns);
  CISTERN_ASSIGN_OR_RETURN(const BatchView view, stage_.View(batch, BatchStage::Use::kPredict));
  const auto step_of = [&](size_t first, size_t size) -> Step {
    return {view,
            first,
            size,
            tables,
            0,
            parameters_,
            graph_->scratch(),
            nullptr,
            nullptr,
            stream_,
            *side_,
            peers_ ? &*peers_ : nullptr};
  };
  for (EmbeddingLayer* embedding : graph_->live_embeddings()) {
    if (!peers_) break;
    CISTERN_RETURN_IF_ERROR(embedding->ReserveExchange(view, device_));
    embedding->TakeRows(step_of(0, batch.size));
    CISTERN_RETURN_IF_ERROR(peers_->status);
  }
  for (size_t first = 0; first < batch.size; first += most) {
    const size_t size = std::min(most, batch.size - first);
    graph_->Infer(step_of(first, size));
    graph_->loss().Predict(logit.value(), size, predictions_.data(), stream_);
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

absl::Status GraphModel::CheckBatch(const Batch& batch, absl::Span<PassTable* const> tables) const {
  const DataConfig& data = config_.data;
  CISTERN_CHECK(tables.size() == config_.embeddings.size());
  if (batch.label.size() != batch.size * data.label_dim ||
      batch.dense.size() != batch.size * data.dense_dim ||
      batch.sparse.size() != data.sparse.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a batch of ", batch.size, " samples holds ", batch.label.size(), " labels, ",
                     batch.dense.size(), " dense features and ", batch.sparse.size(),
                     " sparse inputs; the model reads ", data.label_dim, " and ", data.dense_dim,
                     " a sample, and ", data.sparse.size(), " inputs"));
  }
  for (size_t i = 0; i < data.sparse.size(); ++i) {
    if (batch.sparse[i].slot_num == data.sparse[i].slot_num) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "sparse input '", data.sparse[i].top, "' of a batch has ", batch.sparse[i].slot_num,
        " slots; the model reads ", data.sparse[i].slot_num));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> Model::Create(const ModelConfig& config,
                                                     DeviceContext& device, Communicator* peers) {
  auto model = std::make_unique<GraphModel>(config, device, peers);
  CISTERN_RETURN_IF_ERROR(model->Build());
  return model;
}

}  // namespace cistern
