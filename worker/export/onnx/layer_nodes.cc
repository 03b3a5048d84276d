#include "worker/export/onnx/layer_nodes.h"

#include <cmath>

#include "common/base/check.h"
#include "worker/model/layer/layer_site.h"

namespace cistern {
namespace {

// Gemm has matrices alone; MatMul multiplies by the last dimension of any tensor.
void AddFullyConnected(LayerNodes& nodes) {
  const size_t in = nodes.in().dims.back(), out = nodes.out().dims.back();
  std::string operation = nodes.in().rank() == 2 ? "Gemm" : "MatMul";
  OnnxGraph::Names inputs = {nodes.Input(), nodes.Weights("weight", {in, out})};
  if (nodes.own<model::FullyConnectedConfig>().use_bias) {
    const std::string bias = nodes.Weights("bias", {out});
    if (operation == "MatMul") {
      inputs = {nodes.Inner(operation, inputs)};
      operation = "Add";
    }
    inputs.push_back(bias);
  }
  if (nodes.type() == "InnerProduct") return nodes.Output(operation, inputs);
  nodes.Output("Relu", {nodes.Inner(operation, inputs)});
}

void AddLayerNorm(LayerNodes& nodes) {
  const size_t columns = nodes.in().dims.back();
  const std::string gamma = nodes.Weights("gamma", {columns});
  nodes.Output("LayerNormalization", {nodes.Input(), gamma, nodes.Weights("beta", {columns})},
               {IntAttribute("axis", -1),
                FloatAttribute("epsilon", nodes.own<model::LayerNormConfig>().eps)});
}

// (x - mean) * scale + beta. ONNX's BatchNormalization is computed as x * scale + (beta - mean *
// scale) by common runtimes, which loses digits where the mean is large.
void AddBatchNorm(LayerNodes& nodes) {
  const size_t columns = nodes.in().columns();
  const absl::Span<const float> gamma = nodes.TakeWeights(columns);
  const std::string beta = nodes.Weights("beta", {columns});
  const absl::Span<const float> mean = nodes.TakeRunning(columns);
  const absl::Span<const float> variance = nodes.TakeRunning(columns);
  const float eps = nodes.own<model::BatchNormConfig>().eps;
  std::vector<float> scale;
  for (size_t c = 0; c < columns; ++c) {
    scale.push_back(gamma[c] / std::sqrt(variance[c] + eps));
  }
  const std::string centered =
      nodes.Inner("Sub", {nodes.Input(), nodes.Floats("mean", {columns}, mean)});
  const std::string scaled =
      nodes.Inner("Mul", {centered, nodes.Floats("scale", {columns}, scale)});
  nodes.Output("Add", {scaled, beta});
}

void AddRelu(LayerNodes& nodes) {
  nodes.Output("Relu", {nodes.Input()});
}

void AddElu(LayerNodes& nodes) {
  nodes.Output("Elu", {nodes.Input()},
               {FloatAttribute("alpha", nodes.own<model::EluConfig>().alpha)});
}

void AddIdentity(LayerNodes& nodes) {
  nodes.Output("Identity", {nodes.Input()});
}

void AddPrelu(LayerNodes& nodes) {
  nodes.Output("PRelu", {nodes.Input(), nodes.Weights("slope", {nodes.in().dims.back()})});
}

std::string Selected(LayerNodes& nodes, const std::vector<uint32_t>& positions) {
  return nodes.Ints("selected", std::vector<int64_t>(positions.begin(), positions.end()));
}

void AddReshape(LayerNodes& nodes) {
  const std::vector<uint32_t>& slots = nodes.own<model::ReshapeConfig>().selected;
  if (slots.empty()) return nodes.OutputReshape(nodes.Input());
  nodes.OutputReshape(
      nodes.Inner("Gather", {nodes.Input(), Selected(nodes, slots)}, {IntAttribute("axis", 1)}));
}

void AddSelect(LayerNodes& nodes) {
  const auto& [dim, index] = nodes.own<model::SelectConfig>();
  nodes.Output("Gather", {nodes.Input(), Selected(nodes, index)}, {IntAttribute("axis", dim)});
}

// [rows * b, n] -> [b, rows, n], of which rows are taken.
void AddGather(LayerNodes& nodes) {
  const auto rows = static_cast<int64_t>(nodes.in().rows);
  const std::string samples =
      nodes.InnerReshape(nodes.Input(), {rows, static_cast<int64_t>(nodes.in().columns())});
  const std::string kept = Selected(nodes, nodes.own<model::GatherConfig>().indices);
  nodes.OutputReshape(nodes.Inner("Gather", {samples, kept}, {IntAttribute("axis", 1)}));
}

void AddConcat(LayerNodes& nodes) {
  nodes.Output("Concat", nodes.Inputs(),
               {IntAttribute("axis", nodes.own<model::ConcatConfig>().axis)});
}

void AddSlice(LayerNodes& nodes) {
  const std::string axis = nodes.Ints("axis", {-1});
  for (size_t i = 0; i < nodes.outputs(); ++i) {
    if (!nodes.is_read(i)) continue;
    const auto [lo, hi] = nodes.own<model::SliceConfig>().ranges[i];
    const std::string start = nodes.Ints("start", {lo}), end = nodes.Ints("end", {hi});
    nodes.Output("Slice", {nodes.Input(), start, end, axis}, {}, i);
  }
}

void AddFusedReshapeConcatGeneral(LayerNodes& nodes) {
  nodes.OutputReshape(nodes.Inner("Concat", nodes.Inputs(), {IntAttribute("axis", 2)}));
}

// The last slot is output 1, the slots before it are output 0.
void AddFusedReshapeConcat(LayerNodes& nodes) {
  const std::string vectors = nodes.Inner("Concat", nodes.Inputs(), {IntAttribute("axis", 2)});
  const int64_t last = static_cast<int64_t>(nodes.in().dims[0]) - 1;
  const std::string axis = nodes.Ints("axis", {1});
  for (size_t i = 0; i < nodes.outputs(); ++i) {
    if (!nodes.is_read(i)) continue;
    const std::string start = nodes.Ints("start", {i == 0 ? 0 : last});
    const std::string end = nodes.Ints("end", {i == 0 ? last : last + 1});
    nodes.OutputReshape(nodes.Inner("Slice", {vectors, start, end, axis}), i);
  }
}

void AddMatrixMultiply(LayerNodes& nodes) {
  nodes.Output("MatMul", nodes.Inputs());
}

void AddReduceSum(LayerNodes& nodes) {
  nodes.Output("ReduceSum",
               {nodes.Input(), nodes.Ints("axis", {nodes.own<model::ReduceConfig>().axis})},
               {IntAttribute("keepdims", 1)});
}

void AddReduceMean(LayerNodes& nodes) {
  nodes.Output("ReduceMean", {nodes.Input()},
               {IntsAttribute("axes", {nodes.own<model::ReduceConfig>().axis}),
                IntAttribute("keepdims", 1)});
}

void AddSub(LayerNodes& nodes) {
  nodes.Output("Sub", nodes.Inputs());
}

void AddSigmoid(LayerNodes& nodes) {
  nodes.Output("Sigmoid", {nodes.Input()});
}

// p x + (1 - p) alpha x = x (alpha + (1 - alpha) p), with the running statistics.
void AddDice(LayerNodes& nodes) {
  const size_t columns = nodes.in().columns();
  const absl::Span<const float> mean = nodes.TakeRunning(columns);
  const absl::Span<const float> variance = nodes.TakeRunning(columns);
  const auto [alpha, factor, eps] = nodes.own<model::DiceConfig>();
  std::vector<float> scale;
  for (const float v : variance) scale.push_back(1 / std::sqrt(v + eps));
  const std::string centered =
      nodes.Inner("Sub", {nodes.Input(), nodes.Floats("mean", {columns}, mean)});
  const std::string share = nodes.Inner(
      "Sigmoid", {nodes.Inner("Mul", {centered, nodes.Floats("scale", {columns}, scale)})});
  const std::string gained = nodes.Inner("Mul", {share, nodes.Floats("gain", {1}, {1 - alpha})});
  const std::string slope = nodes.Inner("Add", {gained, nodes.Floats("alpha", {1}, {alpha})});
  nodes.Output("Mul", {nodes.Input(), slope});
}

void AddSoftmax(LayerNodes& nodes) {
  const float factor = nodes.own<model::SoftmaxConfig>().factor;
  const OnnxGraph::Attributes last = {IntAttribute("axis", -1)};
  if (factor == 1) return nodes.Output("Softmax", {nodes.Input()}, last);
  const std::string scaled =
      nodes.Inner("Mul", {nodes.Input(), nodes.Floats("factor", {1}, {factor})});
  nodes.Output("Softmax", {scaled}, last);
}

// Tile repeats the content of each row. A row of one value is repeated where it is.
void AddScale(LayerNodes& nodes) {
  const auto& [axis, factor] = nodes.own<model::ScaleConfig>();
  const std::string times = nodes.Ints("repeats", {1, factor});
  const std::string rows = axis == 0 ? nodes.InnerReshape(nodes.Input(), {1}) : nodes.Input();
  nodes.OutputReshape(nodes.Inner("Tile", {rows, times}));
}

void AddSum(LayerNodes& nodes) {
  nodes.Output("Sum", nodes.Inputs());
}

// Factors are multiplied from left to right, as the layer does.
void AddProduct(LayerNodes& nodes) {
  const OnnxGraph::Names factors = nodes.Inputs();
  std::string product = factors[0];
  for (size_t i = 1; i + 1 < factors.size(); ++i)
    product = nodes.Inner("Mul", {product, factors[i]});
  nodes.Output("Mul", {product, factors.back()});
}

// -log(exp(-a) + exp(-b) + exp(-a - b)), with the largest exponential factored out.
void AddProductLogit(LayerNodes& nodes) {
  const std::string first = nodes.Inner("Neg", {nodes.Input(0)});
  const std::string second = nodes.Inner("Neg", {nodes.Input(1)});
  const std::string both = nodes.Inner("Add", {first, second});
  const OnnxGraph::Names exponents = {first, second, both};
  const std::string largest = nodes.Inner("Max", exponents);
  OnnxGraph::Names terms;
  for (const std::string& exponent : exponents) {
    terms.push_back(nodes.Inner("Exp", {nodes.Inner("Sub", {exponent, largest})}));
  }
  const std::string log = nodes.Inner("Log", {nodes.Inner("Sum", terms)});
  nodes.Output("Neg", {nodes.Inner("Add", {log, largest})});
}

struct LayerType {
  const char* name;
  void (*add)(LayerNodes& nodes);
};

constexpr LayerType kTypes[] = {
    {"InnerProduct", AddFullyConnected},
    {"FusedInnerProduct", AddFullyConnected},
    {"BatchNorm", AddBatchNorm},
    {"LayerNorm", AddLayerNorm},
    {"ReLU", AddRelu},
    {"Dropout", AddIdentity},
    {"ELU", AddElu},
    {"PReLU_Dice", AddDice},
    {"PReLU", AddPrelu},
    {"Sigmoid", AddSigmoid},
    {"Softmax", AddSoftmax},
    {"Reshape", AddReshape},
    {"Cast", AddIdentity},
    {"Concat", AddConcat},
    {"Slice", AddSlice},
    {"Select", AddSelect},
    {"Gather", AddGather},
    {"FusedReshapeConcat", AddFusedReshapeConcat},
    {"FusedReshapeConcatGeneral", AddFusedReshapeConcatGeneral},
    {"Multiply", AddMultiply},
    {"FmOrder2", AddFmOrder2},
    {"ReduceSum", AddReduceSum},
    {"ReduceMean", AddReduceMean},
    {"Add", AddSum},
    {"Sub", AddSub},
    {"DotProduct", AddProduct},
    {"ElementwiseMultiply", AddProduct},
    {"ProductLogit", AddProductLogit},
    {"Scale", AddScale},
    {"MatrixMultiply", AddMatrixMultiply},
    {"SequenceMask", AddSequenceMask},
    {"MultiHeadAttention", AddMultiHeadAttention},
    {"HSTU", AddHstu},
    {"GRU", AddGru},
    {"Interaction", AddInteraction},
    {"MultiCross", AddMultiCross},
};

const LayerType* FindType(const std::string& name) {
  for (const LayerType& type : kTypes) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

}  // namespace

OnnxGraph::Names LayerNodes::Inputs() const {
  OnnxGraph::Names names;
  for (const GraphTensor& input : layer_.inputs) names.push_back(input.name);
  return names;
}

std::string LayerNodes::Named(char separator, const std::string& what) const {
  return layer_.config.name + separator + what;
}

std::string LayerNodes::Floats(const std::string& what, absl::Span<const size_t> dims,
                               absl::Span<const float> values) {
  return graph_.AddFloats(Named('.', what), dims, values);
}

std::string LayerNodes::Ints(const std::string& what, absl::Span<const int64_t> values) {
  return graph_.AddInts(Named('.', what), values);
}

std::string LayerNodes::Weights(const std::string& what, absl::Span<const size_t> dims) {
  size_t count = 1;
  for (const size_t dim : dims) count *= dim;
  return Floats(what, dims, TakeWeights(count));
}

absl::Span<const float> LayerNodes::TakeWeights(size_t count) {
  CISTERN_CHECK(count <= weights_.size());
  const absl::Span<const float> taken = weights_.first(count);
  weights_.remove_prefix(count);
  return taken;
}

absl::Span<const float> LayerNodes::TakeRunning(size_t count) {
  CISTERN_CHECK(count <= running_.size());
  const absl::Span<const float> taken = running_.first(count);
  running_.remove_prefix(count);
  return taken;
}

std::string LayerNodes::Inner(const std::string& operation, const OnnxGraph::Names& inputs,
                              const OnnxGraph::Attributes& attributes) {
  const std::string output = graph_.NewName(Named('/', operation));
  graph_.AddNode(Named('/', operation), operation, inputs, {output}, attributes);
  return output;
}

void LayerNodes::Output(const std::string& operation, const OnnxGraph::Names& inputs,
                        const OnnxGraph::Attributes& attributes, size_t i) {
  graph_.AddNode(Named('/', operation), operation, inputs, {layer_.outputs[i].name}, attributes);
}

std::string LayerNodes::ReshapeTo(absl::Span<const int64_t> dims) {
  std::vector<int64_t> shape = {-1};  // as many rows as remain: the batch, or a multiple of it
  shape.insert(shape.end(), dims.begin(), dims.end());
  return Ints("shape", shape);
}

std::string LayerNodes::InnerReshape(const std::string& tensor, absl::Span<const int64_t> dims) {
  return Inner("Reshape", {tensor, ReshapeTo(dims)});
}

void LayerNodes::OutputReshape(const std::string& tensor, size_t i) {
  const std::vector<size_t>& dims = out(i).dims;
  Output("Reshape", {tensor, ReshapeTo(std::vector<int64_t>(dims.begin(), dims.end()))}, {}, i);
}

bool HasNodes(const std::string& layer_type) {
  return FindType(layer_type) != nullptr;
}

absl::Status AddLayer(const LayerInGraph& layer, OnnxGraph* graph) {
  const LayerType* type = FindType(layer.config.type);
  if (type == nullptr) {
    return absl::UnimplementedError(absl::StrCat(model::DescribeSite(layer.config),
                                                 ": this release cannot export this layer type"));
  }
  LayerNodes nodes(layer, graph);
  type->add(nodes);
  CISTERN_CHECK(nodes.used_all_parameters());
  return absl::OkStatus();
}

// The logits of two classes become the probability of class 1.
void AddPrediction(const LayerInGraph& loss, OnnxGraph* graph) {
  LayerNodes nodes(loss, graph);
  if (loss.config.type != "CrossEntropyLoss") return nodes.Output("Sigmoid", {nodes.Input()});
  const std::string classes = nodes.Inner("Softmax", {nodes.Input()}, {IntAttribute("axis", 1)});
  nodes.Output("Slice", {classes, nodes.Ints("start", {1}), nodes.Ints("end", {2}),
                         nodes.Ints("axis", {1})});
}

}  // namespace cistern
