#include "worker/export/onnx/network_model.h"

#include "common/base/version.h"
#include "worker/export/onnx/layer_nodes.h"
#include "worker/export/onnx/onnx_graph.h"

namespace cistern {
namespace {

constexpr int64_t kIrVersion = 8, kOperatorSet = 17;

class NetworkWriter {
 public:
  NetworkWriter(const model::ModelConfig& config, const DenseNetwork& network,
                const DenseValues& values, bool with_logit)
      : config_(config),
        network_(network),
        values_(values),
        with_logit_(with_logit),
        graph_("dense network") {}

  absl::StatusOr<NetworkModel> Write() {
    NameTensors();
    AddInputs();
    for (const NetworkLayer& layer : network_.layers) {
      CISTERN_RETURN_IF_ERROR(AddLayer(InGraph(layer), &graph_));
    }
    AddOutputs();
    onnx::Model& model = result_.model;
    model.set_ir_version(kIrVersion);
    model.set_producer_name("cistern");
    model.set_producer_version(kVersion);
    model.add_opset_import()->set_version(kOperatorSet);
    *model.mutable_graph() = graph_.Take();
    return std::move(result_);
  }

 private:
  // The outputs' names are fixed, so they are taken first.
  void NameTensors() {
    graph_.NewName(kProbabilityName);
    graph_.NewName(kLogitName);
    Name(config_.data.dense_top);
    for (const model::EmbeddingConfig& embedding : config_.embeddings) Name(embedding.top);
    for (const model::SparseInputConfig& input : config_.data.sparse) Name(input.length_top);
    for (const NetworkLayer& layer : network_.layers) {
      for (const std::string& top : layer.config->tops) Name(top);
    }
  }

  void Name(const std::string& tensor) {
    if (network_.uses(tensor)) names_[tensor] = graph_.NewName(tensor);
  }

  const model::TensorShape& ShapeOf(const std::string& tensor) const {
    return network_.shapes.at(tensor);
  }

  void AddInputs() {
    NetworkInputs& inputs = result_.inputs;
    const std::string& dense = config_.data.dense_top;
    if (network_.uses(dense)) {
      inputs.dense = names_.at(dense);
      graph_.AddInput(inputs.dense, ShapeOf(dense).dims);
    }
    for (size_t e = 0; e < config_.embeddings.size(); ++e) {
      const std::string& top = config_.embeddings[e].top;
      if (!network_.uses(top)) continue;
      inputs.embeddings.emplace_back(e, names_.at(top));
      graph_.AddInput(names_.at(top), ShapeOf(top).dims);
    }
    for (size_t i = 0; i < config_.data.sparse.size(); ++i) {
      const std::string& top = config_.data.sparse[i].length_top;
      if (!network_.uses(top)) continue;
      inputs.lengths.emplace_back(i, names_.at(top));
      graph_.AddInput(names_.at(top), ShapeOf(top).dims);
    }
  }

  LayerInGraph InGraph(const NetworkLayer& layer) const {
    LayerInGraph in_graph = {*layer.config, {}, {}, {}, {}};
    for (const std::string& bottom : BottomsOf(*layer.config, network_.shapes)) {
      in_graph.inputs.push_back({names_.at(bottom), ShapeOf(bottom)});
    }
    for (const std::string& top : layer.config->tops) {
      in_graph.outputs.push_back({network_.uses(top) ? names_.at(top) : "", ShapeOf(top)});
    }
    in_graph.weights = absl::MakeSpan(values_.weights).subspan(layer.first_weight, layer.weights);
    in_graph.running = absl::MakeSpan(values_.running).subspan(layer.first_running, layer.running);
    return in_graph;
  }

  void AddOutputs() {
    const GraphTensor logit = {names_.at(network_.logit()), ShapeOf(network_.logit())};
    const model::TensorShape probability = {1, {config_.data.label_dim}};
    AddPrediction({*network_.loss, {logit}, {{kProbabilityName, probability}}, {}, {}}, &graph_);
    graph_.AddOutput(kProbabilityName, probability.dims);
    if (!with_logit_) return;
    graph_.AddNode(kLogitName, "Identity", {logit.name}, {kLogitName});
    graph_.AddOutput(kLogitName, logit.shape.dims);
  }

  const model::ModelConfig& config_;
  const DenseNetwork& network_;
  const DenseValues& values_;
  const bool with_logit_;
  OnnxGraph graph_;
  std::map<std::string, std::string> names_;  // of tensors of the model, in the graph
  NetworkModel result_;
};

}  // namespace

absl::StatusOr<NetworkModel> MakeNetworkModel(const model::ModelConfig& config,
                                              const DenseNetwork& network,
                                              const DenseValues& values, bool with_logit) {
  return NetworkWriter(config, network, values, with_logit).Write();
}

}  // namespace cistern
