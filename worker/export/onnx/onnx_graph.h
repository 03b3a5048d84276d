// An ONNX graph that is being written: its nodes, its constants, and the names of its tensors.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "proto/onnx.pb.h"

namespace cistern {

// Attributes of a node.
onnx::Attribute IntAttribute(const std::string& name, int64_t value);
onnx::Attribute IntsAttribute(const std::string& name, const std::vector<int64_t>& values);
onnx::Attribute FloatAttribute(const std::string& name, float value);

// All names that it gives to tensors differ, whatever the model file calls its own: a name that is
// taken gets "_2", "_3" ...
//
// Threads: one at a time.
class OnnxGraph {
 public:
  using Names = std::vector<std::string>;
  using Attributes = std::vector<onnx::Attribute>;

  explicit OnnxGraph(const std::string& name) { graph_.set_name(name); }

  // Returns `wanted`, or a name like it that is still free, and takes it.
  std::string NewName(const std::string& wanted);

  // Declare a float tensor [batch, dims...] as an input or output. `batch` is left to the caller of
  // the network.
  void AddInput(const std::string& name, absl::Span<const size_t> dims);
  void AddOutput(const std::string& name, absl::Span<const size_t> dims);

  // Add constants and return their names: floats of the shape dims, and a list of integers.
  std::string AddFloats(const std::string& wanted, absl::Span<const size_t> dims,
                        absl::Span<const float> values);
  std::string AddInts(const std::string& wanted, absl::Span<const int64_t> values);

  // Adds a node that computes `outputs`. Nodes must be added in the order of computation.
  void AddNode(const std::string& name, const std::string& operation, const Names& inputs,
               const Names& outputs, const Attributes& attributes = {});

  const onnx::Graph& graph() const { return graph_; }
  onnx::Graph Take() { return std::move(graph_); }

 private:
  onnx::Tensor& AddConstant(const std::string& wanted, absl::Span<const size_t> dims,
                            onnx::Tensor::DataType type);

  onnx::Graph graph_;
  std::set<std::string> names_, node_names_;
};

}  // namespace cistern
