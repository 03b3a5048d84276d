#include "serve/predictor/workspace.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "common/base/thread_limit.h"
#include "worker/data/source/batch_builder.h"

namespace cistern::serve {
namespace {

// The keys of a request by place. memory: holds them if the input has sequences.
PredictRequest::Input ByPlace(const model::SparseInputConfig& config,
                              const PredictRequest::Input& input, data::SparseColumn* memory) {
  if (!config.sequences.any()) return input;
  *memory = data::SparseColumn();
  data::AppendPlaces(config.sequences, config.slot_num, input.offsets, input.keys, input.weights,
                     memory);
  return {memory->keys, memory->offsets, memory->weights};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Workspace>> Workspace::Create(
    std::shared_ptr<const ServedState> state) {
  auto workspace = std::unique_ptr<Workspace>(new Workspace(std::move(state)));
  CISTERN_RETURN_IF_ERROR(workspace->Build());
  CISTERN_RETURN_IF_ERROR(workspace->WarmUp());
  return workspace;
}

absl::Status Workspace::Build() {
  const ThreadLimit one(1);
  const model::ModelConfig& config = state_->config();
  CISTERN_ASSIGN_OR_RETURN(model_, model::Model::Create(config, device_));
  const v1::Schema& schema = model_->schema();
  const std::vector<ServingDense>& dense = state_->version().dense_tables;
  bool fits = dense.size() == static_cast<size_t>(schema.dense_tables_size());
  for (size_t i = 0; fits && i < dense.size(); ++i) {
    const v1::DenseTableSpec& table = schema.dense_tables(static_cast<int>(i));
    fits =
        dense[i].name == table.name() && dense[i].rows == table.rows() && table.columns_size() == 1;
  }
  if (!fits) {
    return absl::DataLossError(absl::StrCat("version ", state_->version().folder,
                                            ": the dense parameters do not match its model"));
  }
  for (size_t i = 0; i < dense.size(); ++i) {
    CISTERN_RETURN_IF_ERROR(model_->WriteDense(i, state_->dense()[i]));
  }
  model_->Freeze();
  for (const model::EmbeddingConfig& embedding : config.embeddings) {
    CISTERN_ASSIGN_OR_RETURN(const ValueLayout layout, ValueLayout::Create(embedding.spec));
    tables_.push_back(std::make_unique<model::PassTable>(layout, device_));
    borrowed_.push_back(tables_.back().get());
  }
  return absl::OkStatus();
}

absl::Status Workspace::WarmUp() {
  constexpr size_t kSamples = 128;
  const model::ModelConfig& config = state_->config();
  const std::vector<float> dense(kSamples * config.data.dense_dim);
  std::vector<std::vector<Key>> keys;
  std::vector<std::vector<uint32_t>> offsets;
  PredictRequest request = {kSamples, dense, {}};
  for (const model::SparseInputConfig& input : config.data.sparse) {
    const size_t count = kSamples * input.slot_num;
    keys.emplace_back(count, Key{0});
    std::vector<uint32_t>& ends = offsets.emplace_back(count + 1);
    std::iota(ends.begin(), ends.end(), 0u);
  }
  std::vector<std::vector<float>> weights(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    if (config.data.sparse[i].key_weights) weights[i].assign(keys[i].size(), 1.0f);
    request.inputs.push_back({keys[i], offsets[i], weights[i]});
  }
  std::vector<float> predictions(kSamples * config.data.label_dim);
  uint64_t unseen = 0;
  return Predict(request, absl::MakeSpan(predictions), &unseen);
}

absl::Status Workspace::FillBatch(const PredictRequest& request, uint64_t* unseen) {
  const model::ModelConfig& config = state_->config();
  batch_.size = batch_.all = request.samples;
  batch_.label.assign(request.samples * config.data.label_dim, 0.0f);
  batch_.dense.assign(request.dense.begin(), request.dense.end());
  batch_.sparse.resize(request.inputs.size());
  places_.resize(request.inputs.size());
  std::vector<PredictRequest::Input> inputs;  // by place
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    data::HostSparseBatch& sparse = batch_.sparse[i];
    const PredictRequest::Input& input =
        inputs.emplace_back(ByPlace(config.data.sparse[i], request.inputs[i], &places_[i]));
    sparse.slot_num = config.data.sparse[i].places();
    sparse.offsets.assign(input.offsets.begin(), input.offsets.end());
    sparse.rows.resize(input.keys.size());
    std::iota(sparse.rows.begin(), sparse.rows.end(), Row{0});
    sparse.weights.assign(input.weights.begin(), input.weights.end());
    sparse.shares.clear();
    if (!input.weights.empty()) sparse.shares = data::SharesOf(input.offsets, input.weights);
  }
  for (size_t e = 0; e < tables_.size(); ++e) {
    const absl::Span<const Key> keys = inputs[config.embeddings[e].input].keys;
    model::PassTable& table = *tables_[e];
    if (table.rows() < keys.size()) {
      CISTERN_RETURN_IF_ERROR(table.Resize(std::bit_ceil(keys.size())));
    }
    *unseen += state_->tables()[e]->Lookup(keys, table.values(), table.stride());
  }
  return absl::OkStatus();
}

absl::Status Workspace::Predict(const PredictRequest& request, absl::Span<float> predictions,
                                uint64_t* unseen) {
  const ThreadLimit one(1);
  CISTERN_RETURN_IF_ERROR(FillBatch(request, unseen));
  CISTERN_RETURN_IF_ERROR(model_->Predict(batch_, borrowed_, &predictions_, nullptr));
  std::copy(predictions_.begin(), predictions_.end(), predictions.begin());
  return absl::OkStatus();
}

}  // namespace cistern::serve
