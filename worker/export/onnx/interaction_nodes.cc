// The nodes of Multiply, FmOrder2, Interaction and MultiCross. Their formulas are those of
// cuda/op/dense.
#include "absl/strings/str_cat.h"
#include "worker/export/onnx/layer_nodes.h"

namespace cistern {

// [b, S] * [S, E] -> [b, S, E] -> [b, S * E].
void AddMultiply(LayerNodes& nodes) {
  const std::vector<uint32_t>& dims = nodes.own<model::MultiplyConfig>().weight_dims;
  const size_t slots = dims[0], dim = dims[1];
  const std::string features = nodes.Inner("Unsqueeze", {nodes.Input(), nodes.Ints("axis", {2})});
  nodes.OutputReshape(nodes.Inner("Mul", {features, nodes.Weights("weight", {slots, dim})}));
}

// ((sum over slots of x)^2 - sum over slots of x^2) / 2.
void AddFmOrder2(LayerNodes& nodes) {
  const size_t dim = nodes.out().columns(), slots = nodes.in().columns() / dim;
  const std::string vectors =
      nodes.InnerReshape(nodes.Input(), {static_cast<int64_t>(slots), static_cast<int64_t>(dim)});
  const std::string axis = nodes.Ints("axis", {1});
  const auto sum_of = [&](const std::string& tensor) {
    return nodes.Inner("ReduceSum", {tensor, axis}, {IntAttribute("keepdims", 0)});
  };
  const auto square_of = [&](const std::string& tensor) {
    return nodes.Inner("Mul", {tensor, tensor});
  };
  const std::string square_of_sum = square_of(sum_of(vectors));
  const std::string sum_of_squares = sum_of(square_of(vectors));
  const float half = 0.5f;
  nodes.Output("Mul", {nodes.Inner("Sub", {square_of_sum, sum_of_squares}),
                       nodes.Floats("half", {}, {&half, 1})});
}

// [mlp, T T^T below the diagonal, 0] with T = [mlp; the slots' vectors].
void AddInteraction(LayerNodes& nodes) {
  const auto vectors = static_cast<int64_t>(nodes.in(1).dims[0] + 1);
  const std::string mlp = nodes.Inner("Unsqueeze", {nodes.Input(0), nodes.Ints("axis", {1})});
  const std::string all = nodes.Inner("Concat", {mlp, nodes.Input(1)}, {IntAttribute("axis", 1)});
  const std::string turned = nodes.Inner("Transpose", {all}, {IntsAttribute("perm", {0, 2, 1})});
  const std::string products =
      nodes.InnerReshape(nodes.Inner("MatMul", {all, turned}), {vectors * vectors});
  std::vector<int64_t> pairs;
  for (int64_t i = 1; i < vectors; ++i) {
    for (int64_t j = 0; j < i; ++j) pairs.push_back(i * vectors + j);
  }
  const std::string below =
      nodes.Inner("Gather", {products, nodes.Ints("pairs", pairs)}, {IntAttribute("axis", 1)});
  const std::string joined =
      nodes.Inner("Concat", {nodes.Input(0), below}, {IntAttribute("axis", 1)});
  nodes.Output("Pad", {joined, nodes.Ints("pads", {0, 0, 0, 1})});
}

namespace {

// x(l + 1) = x(0) * (x(l) U(l) V(l) + bias(l)) + x(l).
void AddLowRankCrosses(LayerNodes& nodes) {
  const size_t columns = nodes.in().columns(),
               layers = nodes.own<model::MultiCrossConfig>().num_layers;
  const size_t rank = nodes.own<model::MultiCrossConfig>().projection_dim;
  std::string x = nodes.Input();
  for (size_t l = 0; l < layers; ++l) {
    const std::string u = nodes.Weights(absl::StrCat("u", l), {columns, rank});
    const std::string v = nodes.Weights(absl::StrCat("v", l), {rank, columns});
    const std::string bias = nodes.Weights(absl::StrCat("bias", l), {columns});
    const std::string product = nodes.Inner("Gemm", {nodes.Inner("MatMul", {x, u}), v, bias});
    const std::string crossed = nodes.Inner("Mul", {nodes.Input(), product});
    if (l + 1 == layers) return nodes.Output("Add", {crossed, x});
    x = nodes.Inner("Add", {crossed, x});
  }
}

}  // namespace

// x(l + 1) = x(0) (x(l) . w(l)) + x(l) + bias(l).
void AddMultiCross(LayerNodes& nodes) {
  if (nodes.own<model::MultiCrossConfig>().projection_dim > 0) return AddLowRankCrosses(nodes);
  const size_t columns = nodes.in().columns(),
               layers = nodes.own<model::MultiCrossConfig>().num_layers;
  std::string x = nodes.Input();
  for (size_t l = 0; l < layers; ++l) {
    const std::string weight = nodes.Weights(absl::StrCat("weight", l), {columns, 1});
    const std::string bias = nodes.Weights(absl::StrCat("bias", l), {columns});
    const std::string crossed =
        nodes.Inner("Mul", {nodes.Input(), nodes.Inner("MatMul", {x, weight})});
    const std::string sum = nodes.Inner("Add", {crossed, x});
    if (l + 1 == layers) return nodes.Output("Add", {sum, bias});
    x = nodes.Inner("Add", {sum, bias});
  }
}

}  // namespace cistern
