#include "test/worker/model/reference_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "common/base/check.h"
#include "common/base/hash.h"

namespace cistern::model {
namespace {

using Matrix = ReferenceTensor;

// The losses by definition, not in a numerically stable form. labels: [rows, labels per sample].
double LossOf(const LayerConfig& layer, const Matrix& logit, const Matrix& label) {
  double loss = 0;
  const auto log_sigmoid = [](double x) { return std::log(1 / (1 + std::exp(-x))); };
  for (size_t i = 0; i < label.values.size(); ++i) {
    const double y = label.values[i];
    if (layer.type == "CrossEntropyLoss") {
      const double a = std::exp(logit.values[2 * i]), b = std::exp(logit.values[2 * i + 1]);
      loss -= std::log((y < 0.5 ? a : b) / (a + b));
      continue;
    }
    const double x = logit.values[i];
    const bool weighs = layer.type == "MultiCrossEntropyLoss";
    if (weighs && y < -0.5) continue;
    const double weight =
        weighs ? double{layer.own<LossConfig>().target_weight[i % label.columns]} : 1.0;
    loss -= weight * (y * log_sigmoid(x) + (1 - y) * log_sigmoid(-x));
  }
  return loss / static_cast<double>(label.values.size());
}

}  // namespace

void ReferenceModel::Embed(const data::HostBatch& batch) {
  for (size_t i = 0; i < config_.embeddings.size(); ++i) {
    const EmbeddingConfig& embedding = config_.embeddings[i];
    const data::HostSparseBatch& in = batch.sparse[embedding.input];
    const size_t dim = embedding.vec_size;
    Matrix out = MakeReferenceTensor(batch.size, in.slot_num * dim);
    out.last = dim;
    for (size_t o = 0; o + 1 < in.offsets.size(); ++o) {
      const bool is_mean = embedding.combiner == Combiner::kMean;
      const double divisor = is_mean ? in.offsets[o + 1] - in.offsets[o] : 1;
      for (size_t k = in.offsets[o]; k < in.offsets[o + 1]; ++k) {
        for (size_t e = 0; e < dim; ++e) {
          out.values[o * dim + e] += tables[i][in.rows[k] * dim + e] / divisor;
        }
      }
    }
    tensors_[embedding.top] = out;
  }
  for (size_t i = 0; i < config_.data.sparse.size(); ++i) {
    const SparseInputConfig& input = config_.data.sparse[i];
    if (input.length_top.empty()) continue;
    const std::vector<uint32_t>& offsets = batch.sparse[i].offsets;
    Matrix& lengths = tensors_[input.length_top] =
        MakeReferenceTensor(batch.size, input.sequence_num());
    for (size_t o = 0, made = 0; o + 1 < offsets.size();) {
      for (const uint32_t length : input.sequences.lengths) {
        if (length > 0) lengths.values[made++] = offsets[o + length] - offsets[o];
        o += std::max(length, 1u);
      }
    }
  }
}

size_t ReferenceModel::VectorSize(const std::string& embedding) const {
  for (const EmbeddingConfig& config : config_.embeddings) {
    if (config.top == embedding) return config.vec_size;
  }
  return 0;
}

void ReferenceModel::Compute(const LayerConfig& layer, size_t index, size_t batch) {
  const ReferenceFormula* formula = FindReferenceFormula(layer.type);
  if (formula == nullptr) {
    ADD_FAILURE() << "add a row for the layer type '" << layer.type
                  << "' to test/worker/model/reference_layers.cc";
  }
  CISTERN_CHECK(formula != nullptr);
  ReferenceCall call = {layer,
                        {},
                        {},
                        batch,
                        /*predicts=*/step_ == 0,
                        MixKey(config_.solver.seed),
                        step_ << 16 | index,
                        VectorSize(layer.bottoms[0]),
                        next_weight_,
                        next_running_};
  for (const std::string& bottom : layer.bottoms) call.in.push_back(&tensors_[bottom]);
  for (const std::string& top : layer.tops) call.out.push_back(&tensors_[top]);
  formula->compute(call);
}

double ReferenceModel::Loss(const data::HostBatch& batch, uint64_t step) {
  tensors_.clear();
  next_weight_ = {weights.data()};
  next_running_ = {running.data()};
  step_ = step;
  const DataConfig& data = config_.data;
  tensors_[data.label_top] = {data.label_dim, {batch.label.begin(), batch.label.end()}, 0};
  tensors_[data.dense_top] = {data.dense_dim, {batch.dense.begin(), batch.dense.end()}, 0};
  Embed(batch);
  double loss = 0;
  const double size = static_cast<double>(batch.size);
  for (size_t i = 0; i < config_.layers.size(); ++i) {
    const LayerConfig& layer = config_.layers[i];
    if (!layer.is_loss()) {
      Compute(layer, i, batch.size);
      continue;
    }
    const auto& own = layer.own<LossConfig>();
    const Matrix& logit = tensors_[layer.bottoms[0]];
    tensors_["the logit"] = logit;
    loss = LossOf(layer, logit, tensors_[data.label_top]);
    for (double w : weights) {
      if (own.regularizer == "L2") loss += own.lambda / (2 * size) * w * w;
      if (own.regularizer == "L1") loss += own.lambda / size * std::abs(w);
    }
  }
  for (size_t i = 0; i < tables.size() && config_.cistern.embedding_l2 > 0; ++i) {
    const data::HostSparseBatch& in = batch.sparse[config_.embeddings[i].input];
    const size_t dim = config_.embeddings[i].vec_size;
    for (Row row : std::set<Row>(in.rows.begin(), in.rows.end())) {
      for (size_t e = 0; e < dim; ++e) {
        loss += config_.cistern.embedding_l2 / 2 * std::pow(tables[i][row * dim + e], 2);
      }
    }
  }
  return loss;
}

std::vector<double> ReferenceModel::Predict(const data::HostBatch& batch) {
  Loss(batch, 0);
  std::vector<double> predictions = tensors_["the logit"].values;
  if (config_.layers.back().type == "CrossEntropyLoss") {  // the margin of class 1
    for (size_t i = 0; i < batch.size; ++i) {
      predictions[i] = predictions[2 * i + 1] - predictions[2 * i];
    }
    predictions.resize(batch.size);
  }
  for (double& p : predictions) p = 1 / (1 + std::exp(-p));
  return predictions;
}

double ReferenceModel::Derivative(const data::HostBatch& batch, uint64_t step, double* x) {
  const double h = 1e-5, at = *x;
  *x = at + h;
  const double above = Loss(batch, step);
  *x = at - h;
  const double below = Loss(batch, step);
  *x = at;
  return (above - below) / (2 * h);
}

}  // namespace cistern::model
