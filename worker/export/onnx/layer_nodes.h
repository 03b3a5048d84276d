// The ONNX nodes of each layer type, in inference: Dropout and Cast pass their input on, BatchNorm
// takes its running statistics. One function per type; layer_nodes.cc lists them.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "worker/export/onnx/onnx_graph.h"
#include "worker/model/layer/layer_configs.h"
#include "worker/model/layer/tensor.h"

namespace cistern {

// A tensor of the model, and its name in the graph.
struct GraphTensor {
  std::string name;  // of an output: empty if nothing reads it
  model::TensorShape shape;
};

// A layer whose nodes are to be written.
struct LayerInGraph {
  const model::LayerConfig& config;
  std::vector<GraphTensor> inputs, outputs;
  absl::Span<const float> weights, running;  // its own parameters, in the tables' order
};

// Appends the nodes of one layer to a graph. Nodes and tensors within a layer are called
// "<layer>/<operator>", constants "<layer>.<what>".
//
// Threads: one at a time.
class LayerNodes {
 public:
  // layer, graph: outlive this.
  LayerNodes(const LayerInGraph& layer, OnnxGraph* graph)
      : layer_(layer), graph_(*graph), weights_(layer.weights), running_(layer.running) {}

  const std::string& type() const { return layer_.config.type; }
  template <typename Config>
  const Config& own() const {
    return layer_.config.own<Config>();
  }
  const model::TensorShape& in(size_t i = 0) const { return layer_.inputs[i].shape; }
  const model::TensorShape& out(size_t i = 0) const { return layer_.outputs[i].shape; }
  size_t inputs() const { return layer_.inputs.size(); }
  size_t outputs() const { return layer_.outputs.size(); }
  bool is_read(size_t output) const { return !layer_.outputs[output].name.empty(); }

  const std::string& Input(size_t i = 0) const { return layer_.inputs[i].name; }
  OnnxGraph::Names Inputs() const;

  // Add a constant and return its name.
  std::string Floats(const std::string& what, absl::Span<const size_t> dims,
                     absl::Span<const float> values);
  std::string Ints(const std::string& what, absl::Span<const int64_t> values);
  // The layer's next weights as a constant.
  std::string Weights(const std::string& what, absl::Span<const size_t> dims);
  // The layer's next weights and statistics, for the caller to compute with.
  absl::Span<const float> TakeWeights(size_t count);
  absl::Span<const float> TakeRunning(size_t count);

  // Adds a node within the layer and returns the name of its output.
  std::string Inner(const std::string& operation, const OnnxGraph::Names& inputs,
                    const OnnxGraph::Attributes& attributes = {});
  // Adds the node that computes output i.
  void Output(const std::string& operation, const OnnxGraph::Names& inputs,
              const OnnxGraph::Attributes& attributes = {}, size_t i = 0);
  // The same for a Reshape of `tensor` to [-1, dims...]; for an output, the dims are its own.
  std::string InnerReshape(const std::string& tensor, absl::Span<const int64_t> dims);
  void OutputReshape(const std::string& tensor, size_t i = 0);

  bool used_all_parameters() const { return weights_.empty() && running_.empty(); }

 private:
  std::string Named(char separator, const std::string& what) const;
  std::string ReshapeTo(absl::Span<const int64_t> dims);

  const LayerInGraph& layer_;
  OnnxGraph& graph_;
  absl::Span<const float> weights_, running_;  // those not taken yet
};

// Whether a type of dense layer can be exported: every type of the grammar can.
bool HasNodes(const std::string& layer_type);

// Appends the nodes of a layer. kUnimplemented: HasNodes is false.
absl::Status AddLayer(const LayerInGraph& layer, OnnxGraph* graph);

// Appends the nodes that turn a logit into `probability`, as Loss::Predict does.
void AddPrediction(const LayerInGraph& loss, OnnxGraph* graph);

// interaction_nodes.cc
void AddMultiply(LayerNodes& nodes);
void AddFmOrder2(LayerNodes& nodes);
void AddInteraction(LayerNodes& nodes);
void AddMultiCross(LayerNodes& nodes);

// attention_nodes.cc
void AddSequenceMask(LayerNodes& nodes);
void AddMultiHeadAttention(LayerNodes& nodes);
void AddHstu(LayerNodes& nodes);
void AddGru(LayerNodes& nodes);

}  // namespace cistern
