#include "worker/export/onnx/onnx_graph.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cistern {
namespace {

constexpr char kBatch[] = "batch";  // the name of the size that the caller chooses

std::string FreeName(const std::string& wanted, std::set<std::string>* taken) {
  std::string name = wanted;
  for (int n = 2; !taken->insert(name).second; ++n) name = absl::StrCat(wanted, "_", n);
  return name;
}

void Declare(const std::string& name, absl::Span<const size_t> dims, onnx::Value* value) {
  value->set_name(name);
  onnx::Type::TensorType* type = value->mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::Tensor::FLOAT);
  type->mutable_shape()->add_dim()->set_dim_param(kBatch);
  for (const size_t dim : dims) {
    type->mutable_shape()->add_dim()->set_dim_value(static_cast<int64_t>(dim));
  }
}

onnx::Attribute MakeAttribute(const std::string& name, onnx::Attribute::Type type) {
  onnx::Attribute attribute;
  attribute.set_name(name);
  attribute.set_type(type);
  return attribute;
}

template <typename T>
void SetCells(absl::Span<const T> values, onnx::Tensor* tensor) {
  tensor->set_raw_data(values.data(), values.size() * sizeof(T));
}

}  // namespace

onnx::Attribute IntAttribute(const std::string& name, int64_t value) {
  onnx::Attribute attribute = MakeAttribute(name, onnx::Attribute::INT);
  attribute.set_i(value);
  return attribute;
}

onnx::Attribute IntsAttribute(const std::string& name, const std::vector<int64_t>& values) {
  onnx::Attribute attribute = MakeAttribute(name, onnx::Attribute::INTS);
  attribute.mutable_ints()->Assign(values.begin(), values.end());
  return attribute;
}

onnx::Attribute FloatAttribute(const std::string& name, float value) {
  onnx::Attribute attribute = MakeAttribute(name, onnx::Attribute::FLOAT);
  attribute.set_f(value);
  return attribute;
}

std::string OnnxGraph::NewName(const std::string& wanted) {
  return FreeName(wanted, &names_);
}

void OnnxGraph::AddInput(const std::string& name, absl::Span<const size_t> dims) {
  Declare(name, dims, graph_.add_input());
}

void OnnxGraph::AddOutput(const std::string& name, absl::Span<const size_t> dims) {
  Declare(name, dims, graph_.add_output());
}

onnx::Tensor& OnnxGraph::AddConstant(const std::string& wanted, absl::Span<const size_t> dims,
                                     onnx::Tensor::DataType type) {
  onnx::Tensor& tensor = *graph_.add_initializer();
  tensor.set_name(NewName(wanted));
  tensor.set_data_type(type);
  for (const size_t dim : dims) tensor.add_dims(static_cast<int64_t>(dim));
  return tensor;
}

std::string OnnxGraph::AddFloats(const std::string& wanted, absl::Span<const size_t> dims,
                                 absl::Span<const float> values) {
  size_t count = 1;
  for (const size_t dim : dims) count *= dim;
  CISTERN_CHECK(count == values.size());
  onnx::Tensor& tensor = AddConstant(wanted, dims, onnx::Tensor::FLOAT);
  SetCells(values, &tensor);
  return tensor.name();
}

std::string OnnxGraph::AddInts(const std::string& wanted, absl::Span<const int64_t> values) {
  const size_t count = values.size();
  onnx::Tensor& tensor = AddConstant(wanted, {&count, 1}, onnx::Tensor::INT64);
  SetCells(values, &tensor);
  return tensor.name();
}

void OnnxGraph::AddNode(const std::string& name, const std::string& operation, const Names& inputs,
                        const Names& outputs, const Attributes& attributes) {
  onnx::Node& node = *graph_.add_node();
  node.set_name(FreeName(name, &node_names_));
  node.set_op_type(operation);
  node.mutable_input()->Assign(inputs.begin(), inputs.end());
  node.mutable_output()->Assign(outputs.begin(), outputs.end());
  node.mutable_attribute()->Assign(attributes.begin(), attributes.end());
}

}  // namespace cistern
