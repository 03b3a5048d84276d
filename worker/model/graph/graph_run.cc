// Runs the forward and backward pass of a graph: the order of the layers and their streams.
//
// Embeddings are first in the forward order and last in the backward order, and they are limited by
// memory bandwidth, not by computation. Therefore they run on the side stream: in the forward pass
// until the first layer reads one of them, in the backward pass as soon as their gradient is
// complete. The memory plan assumes the order of a single stream, in which every buffer that they
// use lives at least as long.
//
// Layers run with signals blocked: their products would block them one by one (gemm_onednn.cc).
#include <algorithm>
#include <set>

#include "common/base/blocked_signals.h"
#include "cuda/op/dense/elementwise.h"
#include "worker/model/graph/graph.h"
#include "worker/model/layer/frozen_weights.h"

namespace cistern::model {

void Graph::PlanOverlap() {
  std::set<const Storage*> embedded;
  for (const EmbeddingLayer* layer : live_embeddings_) embedded.insert(layer->output_storage());
  first_reader_ = live_embeddings_.size();
  const auto reads = [&](Layer* layer) {
    return std::any_of(layer->inputs().begin(), layer->inputs().end(),
                       [&](const Input& in) { return embedded.count(in.tensor->storage) > 0; });
  };
  while (first_reader_ < live_.size() && !reads(live_[first_reader_])) ++first_reader_;
  complete_after_.resize(backward_.size() - live_embeddings_.size() + 1);
  for (EmbeddingLayer* layer : live_embeddings_) {
    size_t last = 0;  // its last reader in backward_, counted from 1; 0: only the loss reads it
    for (size_t i = 0; i + 1 < complete_after_.size(); ++i) {
      for (const Input& in : backward_[i]->inputs()) {
        if (in.tensor->storage == layer->output_storage()) last = i + 1;
      }
    }
    complete_after_[last].push_back(layer);
    rows_complete_ = std::max(rows_complete_, last);
  }
}

void Graph::Forward(const Step& step, void (Layer::*forward)(const Step&)) {
  const BlockedSignals blocked;
  Bind(step);
  const Step beside = step.Beside();
  step.side.Fork(step.stream);
  for (size_t i = 0; i < live_.size(); ++i) {
    if (i == first_reader_) step.side.Join(step.stream);
    (live_[i]->*forward)(i < live_embeddings_.size() ? beside : step);
  }
  if (first_reader_ == live_.size()) step.side.Join(step.stream);
}

void Graph::Freeze(Parameters& parameters, Stream& stream) {
  for (Layer* layer : live_) {
    auto* const frozen = dynamic_cast<FrozenWeights*>(layer);
    if (frozen != nullptr) frozen->Freeze(parameters, stream);
  }
}

void Graph::Backward(const Step& step) {
  const BlockedSignals blocked;
  const Step beside = step.Beside();
  for (size_t i = 0; i < complete_after_.size(); ++i) {
    if (i > 0) backward_[i - 1]->Backward(step);
    if (complete_after_[i].empty()) continue;
    step.side.Fork(step.stream);
    for (EmbeddingLayer* layer : complete_after_[i]) layer->Backward(beside);
  }
}

void Graph::ForwardAhead(const Step& step) {
  Bind(step);
  ForwardLayers(step, live_embeddings_.size(), first_reader_);
}

void Graph::ForwardRest(const Step& step) {
  ForwardLayers(step, first_reader_, live_.size());
}

void Graph::BackwardToRows(const Step& step) {
  BackwardLayers(step, 0, rows_complete_);
}

void Graph::BackwardRest(const Step& step) {
  BackwardLayers(step, rows_complete_, backward_.size() - live_embeddings_.size());
}

void Graph::ForwardLayers(const Step& step, size_t first, size_t end) {
  const BlockedSignals blocked;
  for (size_t i = first; i < end; ++i) live_[i]->Forward(step);
}

void Graph::BackwardLayers(const Step& step, size_t first, size_t end) {
  const BlockedSignals blocked;
  for (size_t i = first; i < end; ++i) backward_[i]->Backward(step);
}

// The const_cast is safe: layers do not write to external inputs, and the memory plan does not
// place outputs there. Dense features are converted once, here.
void Graph::Bind(const Step& step) {
  label_->storage->value =
      const_cast<float*>(step.batch.label) + step.first * config_.data.label_dim;
  if (dense_ == nullptr) return;
  const size_t width = config_.data.dense_dim;
  const float* dense = step.batch.dense + step.first * width;
  if (converts_dense()) {
    op::Convert(dense, dense_->value(), step.size * width, step.stream);
  } else {
    dense_->storage->value = const_cast<float*>(dense);
  }
}

}  // namespace cistern::model
