#include "worker/model/model.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "common/hash.h"
#include "common/schema.h"
#include "cuda/op/dense_update.h"
#include "cuda/op/elementwise.h"
#include "cuda/op/sum.h"
#include "worker/model/graph.h"

namespace cistern {
namespace {

class GraphModel : public Model {
 public:
  GraphModel(const ModelConfig& config, Stream& stream) : config_(config), stream_(stream) {}
  absl::Status Build();

  const v1::Schema& schema() const override { return schema_; }
  absl::StatusOr<StepResult> Train(const Batch& batch, absl::Span<PassTable* const> tables,
                                   uint64_t step, double lr_scale) override;
  absl::Status Predict(const Batch& batch, absl::Span<PassTable* const> tables,
                       std::vector<float>* predictions, std::vector<float>* logits) override;
  v1::StepClock clock() const override;
  void SetClock(const v1::StepClock& clock) override;
  absl::Status BringUp(absl::Span<PassTable* const> tables) override;
  std::vector<float> ReadDense(size_t i) const override { return parameters_.Read(i); }
  absl::Status WriteDense(size_t i, absl::Span<const float> values) override {
    return AddContext(parameters_.Write(i, values), config_.path);
  }

 private:
  absl::Status CheckMemory() const;
  absl::Status CheckBatch(const Batch& batch, absl::Span<PassTable* const> tables) const;
  double Regularize(const Step& step);
  double GradientNorm(const Step& step);
  void ScaleGradients(float factor, const Step& step);
  void Update(const Step& step, double lr_scale);
  absl::Status NotFinite(const char* what, uint64_t step) const;

  const ModelConfig config_;
  Stream& stream_;
  Parameters parameters_;
  std::unique_ptr<Graph> graph_;
  DeviceBuffer scratch_;  // of the loss and of sums over the parameters
  v1::Schema schema_;
};

absl::Status GraphModel::Build() {
  absl::StatusOr<std::unique_ptr<Graph>> graph = Graph::Create(config_, &parameters_);
  if (!graph.ok()) return AddContext(graph.status(), config_.path);
  graph_ = *std::move(graph);
  CISTERN_RETURN_IF_ERROR(CheckMemory());
  graph_->Allocate();
  parameters_.Allocate(config_.optimizer.rule, MixKey(config_.solver.seed ^ HashBytes("dense")));
  scratch_.Grow(std::max(graph_->loss().ScratchFloats(graph_->planned_batch()),
                         op::SumScratchFloats(parameters_.count())));
  for (const EmbeddingConfig& embedding : config_.embeddings) {
    *schema_.add_tables() = embedding.spec;
  }
  for (const v1::DenseTableSpec& table : parameters_.tables()) {
    *schema_.add_dense_tables() = table;
  }
  return AddContext(CheckSchema(schema_), config_.path);
}

// A batch size with a zero too many would otherwise end the process, or the machine's patience.
absl::Status GraphModel::CheckMemory() const {
  constexpr double kGiB = 1 << 30;
  const StepMemory step = graph_->memory();
  const double floats = static_cast<double>(step.values) + static_cast<double>(step.gradients) +
                        static_cast<double>(step.scratch);
  const double wanted = floats * sizeof(float) / kGiB;
  const double there = static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                       static_cast<double>(sysconf(_SC_PAGESIZE)) / kGiB;
  if (wanted <= there) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "%s: a step of %d samples takes %.1f GiB, and this machine has %.1f GiB: lower "
      "solver.batchsize or solver.batchsize_eval (cistern train --dry-run shows what takes how "
      "much)",
      config_.path, graph_->planned_batch(), wanted, there));
}

absl::StatusOr<StepResult> GraphModel::Train(const Batch& batch,
                                             absl::Span<PassTable* const> tables, uint64_t number,
                                             double lr_scale) {
  CISTERN_RETURN_IF_ERROR(CheckBatch(batch, tables));
  if (batch.size == 0 || batch.size > config_.solver.batchsize) {
    return absl::InvalidArgumentError(absl::StrCat("a training batch of ", batch.size,
                                                   " samples; solver.batchsize is ",
                                                   config_.solver.batchsize));
  }
  const Step step = {batch, 0, batch.size, tables, number, parameters_, graph_->scratch(), stream_};
  parameters_.StartStep();
  for (EmbeddingLayer* embedding : graph_->live_embeddings()) embedding->MakeUp(step, lr_scale);
  graph_->Forward(step);
  StepResult result;
  const Tensor& logit = graph_->logit();
  result.loss = graph_->loss().Compute(logit.value(), batch.label.data(), batch.size, logit.grad(),
                                       scratch_.data(), stream_);
  if (!std::isfinite(result.loss)) return NotFinite("loss", number);
  if (graph_->has_dead_parameters()) {
    op::Fill(0, parameters_.grads(), parameters_.count(), stream_);
  }
  graph_->Backward(step);
  result.loss += Regularize(step);
  result.grad_norm = GradientNorm(step);
  if (!std::isfinite(result.loss)) return NotFinite("loss", number);
  if (!std::isfinite(result.grad_norm)) return NotFinite("gradient", number);
  CISTERN_RETURN_IF_ERROR(stream_.status());

  // torch.nn.utils.clip_grad_norm_: min(1, clip / (norm + 1e-6)).
  const double clip = config_.cistern.clip_norm / (result.grad_norm + 1e-6);
  if (config_.cistern.clip_norm > 0 && clip < 1) ScaleGradients(static_cast<float>(clip), step);
  parameters_.Advance();
  Update(step, lr_scale);
  CISTERN_RETURN_IF_ERROR(stream_.status());
  return result;
}

// Adds the gradients of the regularizers and returns what they add to the loss.
double GraphModel::Regularize(const Step& step) {
  double loss = 0;
  const double l2 = config_.cistern.embedding_l2;
  for (EmbeddingLayer* embedding : graph_->live_embeddings()) {
    if (l2 > 0) loss += l2 / 2 * embedding->AddL2(static_cast<float>(l2), step);
  }
  const LayerConfig& config = graph_->loss_config();
  const double lambda = config.lambda / static_cast<double>(step.size);
  if (config.regularizer.empty() || lambda == 0 || parameters_.count() == 0) return loss;
  double sum = 0;
  const float* weights = parameters_.weights();
  if (config.regularizer == "L2") {
    op::AddL2Gradient(static_cast<float>(lambda), weights, parameters_.grads(), parameters_.count(),
                      stream_);
    op::SumOfSquares(weights, &sum, parameters_.count(), scratch_.data(), stream_);
    return loss + lambda / 2 * sum;
  }
  op::AddL1Gradient(static_cast<float>(lambda), weights, parameters_.grads(), parameters_.count(),
                    stream_);
  op::SumOfMagnitudes(weights, &sum, parameters_.count(), scratch_.data(), stream_);
  return loss + lambda * sum;
}

// Over all gradients of the step, dense and sparse. Taken at every step, clipped or not: it is also
// what keeps a gradient that is not finite away from the tables.
double GraphModel::GradientNorm(const Step& step) {
  double squares = 0;
  op::SumOfSquares(parameters_.grads(), &squares, parameters_.count(), scratch_.data(), stream_);
  for (EmbeddingLayer* embedding : graph_->live_embeddings()) {
    squares += embedding->SumOfSquares(step);
  }
  return std::sqrt(squares);
}

void GraphModel::ScaleGradients(float factor, const Step& step) {
  op::Scale(factor, parameters_.grads(), parameters_.count(), stream_);
  for (EmbeddingLayer* embedding : graph_->live_embeddings()) {
    embedding->ScaleGradients(factor, step);
  }
}

void GraphModel::Update(const Step& step, double lr_scale) {
  const OptimizerConfig& dense = config_.optimizer;
  op::DenseUpdate(dense.rule,
                  StepSize(dense.rule, dense.schedule.At(step.number) * lr_scale, step.number),
                  parameters_.grads(), parameters_.weights(), parameters_.states(),
                  parameters_.count(), stream_);
  for (EmbeddingLayer* embedding : graph_->live_embeddings()) embedding->Update(step, lr_scale);
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
    embedding.step_sizes().Restore(
        known ? clock.rates(static_cast<int>(e)) : v1::RateHistory::default_instance(),
        clock.step());
  }
}

absl::Status GraphModel::BringUp(absl::Span<PassTable* const> tables) {
  for (const auto& embedding : graph_->embeddings()) {
    embedding->BringUp(*tables[embedding->index()], stream_);
  }
  return stream_.status();
}

absl::Status GraphModel::Predict(const Batch& batch, absl::Span<PassTable* const> tables,
                                 std::vector<float>* predictions, std::vector<float>* logits) {
  CISTERN_RETURN_IF_ERROR(CheckBatch(batch, tables));
  const size_t labels = config_.data.label_dim, most = graph_->planned_batch();
  const Tensor& logit = graph_->logit();
  predictions->resize(batch.size * labels);
  if (logits != nullptr) logits->clear();
  for (size_t first = 0; first < batch.size; first += most) {
    const size_t size = std::min(most, batch.size - first);
    graph_->Infer({batch, first, size, tables, 0, parameters_, graph_->scratch(), stream_});
    graph_->loss().Predict(logit.value(), size, predictions->data() + first * labels, stream_);
    if (logits != nullptr) {
      logits->insert(logits->end(), logit.value(), logit.value() + size * logit.shape.columns());
    }
  }
  return stream_.status();
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

absl::Status GraphModel::NotFinite(const char* what, uint64_t step) const {
  return absl::DataLossError(absl::StrCat(
      config_.path, ": the ", what, " of step ", step,
      " is not a finite number, so nothing was updated; a lower learning rate, a warm-up or "
      "cistern.clip_norm may help, or the dense features hold such a number"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> Model::Create(const ModelConfig& config, Stream& stream) {
  auto model = std::make_unique<GraphModel>(config, stream);
  CISTERN_RETURN_IF_ERROR(model->Build());
  return model;
}

}  // namespace cistern
