// Layers in the order of computation, over memory that is planned once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/status.h"
#include "worker/config/model_config.h"
#include "worker/model/embedding_layer.h"
#include "worker/model/layer.h"
#include "worker/model/layer_site.h"

namespace cistern {

// The graph of a model, up to its logit. What does not lead to the loss is shaped and keeps its
// parameters, but is not computed: its gradient is zero.
//
// Threads: one at a time.
class Graph {
 public:
  // Builds layers and registers parameters. Errors: graph_check.h, and each layer's about its
  // shapes. config must outlive the graph.
  static absl::StatusOr<std::unique_ptr<Graph>> Create(const ModelConfig& config,
                                                       Parameters* parameters);

  // Plans memory for batches of up to batchsize samples in training and planned_batch() at all.
  void Allocate();
  size_t planned_batch() const { return planned_batch_; }

  void Forward(Step step);
  void Infer(Step step);
  // From the gradient that was written to logit().grad.
  void Backward(Step step);

  const Tensor& logit() const { return *logit_; }
  const LayerConfig& loss() const { return *loss_; }
  // Those whose rows are moved, in the order of config.embeddings.
  const std::vector<EmbeddingLayer*>& live_embeddings() const { return live_embeddings_; }
  // Some parameters belong to a layer that is not computed.
  bool has_dead_parameters() const { return has_dead_parameters_; }
  float* scratch() { return scratch_.data(); }
  std::string Describe() const { return description_; }

 private:
  explicit Graph(const ModelConfig& config) : config_(config) {}
  absl::Status Build(Parameters* parameters);
  void AddInputs();
  absl::Status AddLayers(Parameters* parameters);
  absl::Status AddLoss(const LayerConfig& loss);
  void DescribeLayer(const LayerConfig& layer, const std::string& by, size_t parameters);
  void DropDeadLayers();
  void AssignGradients();
  void PlaceValues();
  void PlaceGradients();
  void Bind(const Step& step);

  const ModelConfig& config_;
  TensorSet tensors_;
  Tensor* label_ = nullptr;
  Tensor* dense_ = nullptr;
  Tensor* logit_ = nullptr;
  const LayerConfig* loss_ = nullptr;
  std::vector<std::unique_ptr<EmbeddingLayer>> embeddings_;
  std::vector<std::unique_ptr<Layer>> dense_layers_;
  std::vector<Layer*> live_;      // in the order of computation
  std::vector<Layer*> backward_;  // in the order of the backward pass
  std::vector<EmbeddingLayer*> live_embeddings_;
  bool has_dead_parameters_ = false;
  size_t planned_batch_ = 0;
  DeviceBuffer values_, gradients_, scratch_;
  std::string description_;
};

}  // namespace cistern
