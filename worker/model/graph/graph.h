// The graph of layers, in the order of computation, and its memory, which is planned once.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/model/config/model_config.h"
#include "worker/model/graph/memory_plan.h"
#include "worker/model/graph/model_summary.h"
#include "worker/model/graph/precision.h"
#include "worker/model/layer/embedding_layer.h"
#include "worker/model/layer/layer.h"
#include "worker/model/layer/layer_site.h"
#include "worker/model/layer/loss.h"

namespace cistern::model {

// The graph of a model, from its inputs to its logit and loss. A layer that does not lead to the
// loss is dead: its shapes are checked and it keeps its parameters, but it is not computed, and its
// gradient is zero.
//
// Threads: one at a time.
class Graph {
 public:
  // Builds the layers and registers their parameters. config must outlive the graph.
  // Errors: those of graph_check.h, and those of each layer about its shapes.
  static absl::StatusOr<std::unique_ptr<Graph>> Create(const ModelConfig& config,
                                                       Parameters* parameters);

  // Allocates memory for training batches of up to batchsize samples, and for other batches of up
  // to planned_batch() samples.
  absl::Status Allocate(DeviceContext& device);
  size_t planned_batch() const { return planned_batch_; }
  // The memory that Allocate needs.
  StepMemory memory() const;

  // Computes the values of all layers. forward: &Layer::Infer for predictions, which have no
  // backward pass.
  void Forward(const Step& step, void (Layer::*forward)(const Step&) = &Layer::Forward);
  // The weights do not change any more (worker/model/layer/frozen_weights.h).
  void Freeze(Parameters& parameters, Stream& stream);
  // Computes all gradients from logit().grad. On return the backward passes of embeddings may still
  // run on the step's side stream.
  void Backward(const Step& step);

  // The same in parts and without the embeddings, for a step of several workers. Rows are exchanged
  // during the first part, and gradients of rows during the last.
  void ForwardAhead(const Step& step);    // layers before the first that reads an embedding
  void ForwardRest(const Step& step);     // the other layers
  void BackwardToRows(const Step& step);  // until the gradients of all embeddings are complete
  void BackwardRest(const Step& step);
  // Whether the first and the last part contain any layers.
  bool works_ahead() const { return first_reader_ > live_embeddings_.size(); }
  bool works_behind() const { return rows_complete_ + 1 < complete_after_.size(); }

  const Tensor& logit() const { return *logit_; }
  Loss& loss() { return *loss_; }
  const LayerConfig& loss_config() const { return *loss_config_; }
  // The embeddings that lead to the loss, in the order of config.embeddings.
  const std::vector<EmbeddingLayer*>& live_embeddings() const { return live_embeddings_; }
  // All embeddings, in the order of config.embeddings.
  const std::vector<std::unique_ptr<EmbeddingLayer>>& embeddings() const { return embeddings_; }
  // True if some parameters belong to a dead layer.
  bool has_dead_parameters() const { return has_dead_parameters_; }
  float* scratch() { return scratch_.data(); }
  // The layers of the file, embeddings first.
  const std::vector<LayerSummary>& layers() const { return summaries_; }

 private:
  explicit Graph(const ModelConfig& config) : config_(config), tensors_(ActivationsOf(config)) {}
  absl::Status Build(Parameters* parameters);
  void AddInputs();
  absl::Status AddLengths();  // of sequences
  absl::Status AddLayers(Parameters* parameters);
  absl::Status AddLoss(const LayerConfig& loss);
  void SummarizeLayer(const LayerConfig& layer, const std::vector<std::string>& shaped_as,
                      size_t parameters);
  void DropDeadLayers();
  void MarkDeadLayers(const std::set<const Storage*>& needed);
  void AssignGradients();
  void WidenMatrices();
  void PlaceInConcats(DeviceKind device);
  bool FitsInConcat(const Storage& part, const Layer& concat, size_t first,
                    DeviceKind device) const;
  bool CanShareConcat(const Storage& part, const Layer& concat) const;
  // The memory plan, and the buffer of each storage.
  struct Placement {
    MemoryPlan plan;
    std::map<Storage*, size_t> buffers;  // index into plan.offsets
  };
  Placement PlaceValues() const;
  Placement PlaceGradients() const;
  size_t ScratchFloats() const;
  void PlanOverlap();
  void Bind(const Step& step);
  // Compute layers first .. end of live_ forward, and of backward_ backward.
  void ForwardLayers(const Step& step, size_t first, size_t end);
  void BackwardLayers(const Step& step, size_t first, size_t end);
  // True if the dense features must be converted from float to the type of the activations.
  bool converts_dense() const {
    return dense_ != nullptr && dense_->storage->type != ElementType::kFloat;
  }

  const ModelConfig& config_;
  TensorSet tensors_;
  Tensor* label_ = nullptr;
  Tensor* dense_ = nullptr;
  Tensor* logit_ = nullptr;
  const LayerConfig* loss_config_ = nullptr;
  std::unique_ptr<Loss> loss_;
  std::vector<std::unique_ptr<EmbeddingLayer>> embeddings_;
  std::vector<std::unique_ptr<Layer>> dense_layers_;
  std::vector<Layer*> live_;      // in the order of computation, embeddings first
  std::vector<Layer*> backward_;  // in the order of the backward pass, embeddings last
  size_t first_reader_ = 0;       // index in live_ of the first layer that reads an embedding
  // By i: the embeddings whose gradient is complete after the first i layers of backward_.
  std::vector<std::vector<EmbeddingLayer*>> complete_after_;
  size_t rows_complete_ = 0;  // number of layers of backward_ after which all are complete
  std::vector<EmbeddingLayer*> live_embeddings_;
  bool has_dead_parameters_ = false;
  size_t planned_batch_ = 0;
  DeviceFloats values_, gradients_, scratch_;
  std::vector<LayerSummary> summaries_;
  std::vector<std::vector<const Storage*>> summarized_;  // by summary: storages the layer writes
};

}  // namespace cistern::model
