// Layers in the order of computation, over memory that is planned once.
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

  // Takes memory for batches of up to batchsize samples in training and planned_batch() at all.
  absl::Status Allocate(DeviceContext& device);
  size_t planned_batch() const { return planned_batch_; }
  // What Allocate takes, or would.
  StepMemory memory() const;

  void Forward(const Step& step);
  void Infer(const Step& step);
  // From the gradient that was written to logit().grad. Embeddings' backward passes may still run
  // on the step's side.
  void Backward(const Step& step);

  // The same in parts and without the embeddings, for a step of several workers, whose rows come
  // and whose gradients go beside the first and the last of them.
  void ForwardAhead(const Step& step);    // layers before the first that reads an embedding
  void ForwardRest(const Step& step);     // the others
  void BackwardToRows(const Step& step);  // until the gradients of all embeddings are complete
  void BackwardRest(const Step& step);
  // The first and the last part are some layers.
  bool works_ahead() const { return first_reader_ > live_embeddings_.size(); }
  bool works_behind() const { return rows_complete_ + 1 < complete_after_.size(); }

  const Tensor& logit() const { return *logit_; }
  Loss& loss() { return *loss_; }
  const LayerConfig& loss_config() const { return *loss_config_; }
  // Those whose rows are moved, in the order of config.embeddings.
  const std::vector<EmbeddingLayer*>& live_embeddings() const { return live_embeddings_; }
  // All of them, by config.embeddings.
  const std::vector<std::unique_ptr<EmbeddingLayer>>& embeddings() const { return embeddings_; }
  // Some parameters belong to a layer that is not computed.
  bool has_dead_parameters() const { return has_dead_parameters_; }
  float* scratch() { return scratch_.data(); }
  // The layers of the file, embeddings first.
  const std::vector<LayerSummary>& layers() const { return summaries_; }

 private:
  explicit Graph(const ModelConfig& config) : config_(config), tensors_(ActivationsOf(config)) {}
  absl::Status Build(Parameters* parameters);
  void AddInputs();
  absl::Status AddLayers(Parameters* parameters);
  absl::Status AddLoss(const LayerConfig& loss);
  void SummarizeLayer(const LayerConfig& layer, const std::vector<std::string>& shaped_as,
                      size_t parameters);
  void DropDeadLayers();
  void MarkDeadLayers(const std::set<const Storage*>& needed);
  void AssignGradients();
  // Where each storage lies.
  struct Placement {
    MemoryPlan plan;
    std::map<Storage*, size_t> buffers;  // index into plan.offsets
  };
  Placement PlaceValues() const;
  Placement PlaceGradients() const;
  size_t ScratchFloats() const;
  void PlanOverlap();
  void Compute(const Step& step, void (Layer::*direction)(const Step&));
  void Bind(const Step& step);
  // Layers first .. end of live_ forward, and of backward_ back.
  void ForwardLayers(const Step& step, size_t first, size_t end);
  void BackwardLayers(const Step& step, size_t first, size_t end);
  // The dense features of the batch are floats, and the activations are not.
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
  size_t first_reader_ = 0;       // in live_: of an embedding
  // Embeddings whose gradient is complete after the first i layers of backward_.
  std::vector<std::vector<EmbeddingLayer*>> complete_after_;
  size_t rows_complete_ = 0;  // after so many those of all are
  std::vector<EmbeddingLayer*> live_embeddings_;
  bool has_dead_parameters_ = false;
  size_t planned_batch_ = 0;
  DeviceFloats values_, gradients_, scratch_;
  std::vector<LayerSummary> summaries_;
  std::vector<std::vector<const Storage*>> summarized_;  // by summary: what the layer writes
};

}  // namespace cistern
