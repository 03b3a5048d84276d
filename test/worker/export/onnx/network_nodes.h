// Builds the network of a model file and looks things up in it.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "test/worker/export/onnx/stored_model.h"
#include "worker/export/onnx/network_model.h"

namespace cistern {

inline NetworkModel NetworkOf(const model::ModelConfig& config, StoredModel& model,
                              bool with_logit = false) {
  const DenseNetwork network = FindDenseNetwork(config).value();
  const DenseValues values = ReadDenseValues(network, model).value();
  return MakeNetworkModel(config, network, values, with_logit).value();
}

// The network of the small model file with these layers (WithLayers).
inline NetworkModel NetworkWith(const std::string& layers, const std::string& last,
                                const std::vector<std::string>& overrides = {}) {
  const model::ModelConfig config = model::ParseOrDie(overrides, WithLayers(layers, last));
  StoredModel model(config);
  return NetworkOf(config, model);
}

// "fc1/Gemm(concat1, fc1.weight, fc1.bias) -> fc1": the nodes of layer `scope`, or all.
inline std::vector<std::string> NodesOf(const NetworkModel& network,
                                        const std::string& scope = "") {
  std::vector<std::string> lines;
  for (const onnx::Node& node : network.model.graph().node()) {
    if (node.name().rfind(scope, 0) != 0) continue;
    std::string inputs;
    for (const std::string& input : node.input()) {
      absl::StrAppend(&inputs, inputs.empty() ? "" : ", ", input);
    }
    lines.push_back(absl::StrCat(node.op_type(), "(", inputs, ") -> ", node.output(0)));
  }
  return lines;
}

inline const onnx::Tensor& ConstantOf(const NetworkModel& network, const std::string& name) {
  for (const onnx::Tensor& tensor : network.model.graph().initializer()) {
    if (tensor.name() == name) return tensor;
  }
  ADD_FAILURE() << "no constant " << name;
  return onnx::Tensor::default_instance();
}

template <typename T>
std::vector<T> CellsOf(const NetworkModel& network, const std::string& name) {
  const std::string& bytes = ConstantOf(network, name).raw_data();
  std::vector<T> cells(bytes.size() / sizeof(T));
  std::memcpy(cells.data(), bytes.data(), bytes.size());
  return cells;
}

}  // namespace cistern
