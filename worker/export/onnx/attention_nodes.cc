// The nodes of SequenceMask, MultiHeadAttention, HSTU and GRU. Their formulas are those of
// cuda/op/dense.
#include <cmath>

#include "cuda/op/dense/softmax.h"
#include "worker/export/onnx/layer_nodes.h"

namespace cistern {
namespace {

// 1, 2 ... count.
std::vector<float> Positions(size_t count) {
  std::vector<float> positions(count);
  for (size_t i = 0; i < count; ++i) positions[i] = static_cast<float>(i + 1);
  return positions;
}

// 10000 (1 - mask), minus the minimum of the row: a softmax cancels that, but large numbers would
// cost digits.
std::string Penalties(LayerNodes& nodes, const std::string& mask) {
  const float one = 1, size = op::kMaskPenalty;
  const std::string masked = nodes.Inner("Sub", {nodes.Floats("one", {}, {&one, 1}), mask});
  const std::string least = nodes.Inner("ReduceMin", {masked},
                                        {IntsAttribute("axes", {-1}), IntAttribute("keepdims", 1)});
  return nodes.Inner(
      "Mul", {nodes.Inner("Sub", {masked, least}), nodes.Floats("penalty", {}, {&size, 1})});
}

// [inputs, 3 n] of parts r, i and m as ONNX has it: [1, 3 n, inputs], of parts i, r and m.
std::vector<float> ForOnnxGru(absl::Span<const float> weights, size_t inputs, size_t n) {
  constexpr size_t kParts[] = {1, 0, 2};
  std::vector<float> made;
  for (const size_t part : kParts) {
    for (size_t j = 0; j < n; ++j) {
      for (size_t k = 0; k < inputs; ++k) made.push_back(weights[k * 3 * n + part * n + j]);
    }
  }
  return made;
}

std::string SiluNodes(LayerNodes& nodes, const std::string& x) {
  return nodes.Inner("Mul", {x, nodes.Inner("Sigmoid", {x})});
}

}  // namespace

// ONNX's GRU reads [steps, b, columns] and writes [steps, 1, b, n].
void AddGru(LayerNodes& nodes) {
  const size_t n = nodes.own<model::GruConfig>().num_output;
  const size_t steps = nodes.out().columns() / n, in = nodes.in().columns() / steps;
  const std::string rows =
      nodes.InnerReshape(nodes.Input(), {static_cast<int64_t>(steps), static_cast<int64_t>(in)});
  const std::string x = nodes.Inner("Transpose", {rows}, {IntsAttribute("perm", {1, 0, 2})});
  const std::string w =
      nodes.Floats("W", {1, 3 * n, in}, ForOnnxGru(nodes.TakeWeights(in * 3 * n), in, n));
  const std::string r =
      nodes.Floats("R", {1, 3 * n, n}, ForOnnxGru(nodes.TakeWeights(n * 3 * n), n, n));
  std::vector<float> biases = ForOnnxGru(nodes.TakeWeights(3 * n), 1, n);
  biases.resize(6 * n);  // there is none beside R
  const std::string y = nodes.Inner("GRU", {x, w, r, nodes.Floats("B", {1, 6 * n}, biases)},
                                    {IntAttribute("hidden_size", static_cast<int64_t>(n)),
                                     IntAttribute("linear_before_reset", 1)});
  nodes.OutputReshape(nodes.Inner("Transpose", {y}, {IntsAttribute("perm", {2, 0, 1, 3})}));
}

// [b, 1] and [b, 1] -> [b, 1, queries, keys].
void AddSequenceMask(LayerNodes& nodes) {
  const auto [queries, keys] = nodes.own<model::SequenceMaskConfig>();
  const auto within = [&](size_t input, const std::string& what, absl::Span<const size_t> dims,
                          size_t count) {
    const std::string length = nodes.InnerReshape(nodes.Input(input), {1, 1, 1});
    return nodes.Inner("LessOrEqual", {nodes.Floats(what, dims, Positions(count)), length});
  };
  const std::string query = within(0, "queries", {queries, 1}, queries);
  const std::string key = within(1, "keys", {keys}, keys);
  nodes.Output("Cast", {nodes.Inner("And", {query, key})},
               {IntAttribute("to", onnx::Tensor::FLOAT)});
}

// [b, length, heads * dim] -> [b, heads, length, dim], and the products by head.
void AddMultiHeadAttention(LayerNodes& nodes) {
  const int64_t heads = nodes.own<model::MultiHeadAttentionConfig>().heads;
  const auto dim = static_cast<int64_t>(nodes.in().dims[1]) / heads;
  const auto by_head = [&](size_t input, const std::vector<int64_t>& order) {
    const auto length = static_cast<int64_t>(nodes.in(input).dims[0]);
    return nodes.Inner("Transpose", {nodes.InnerReshape(nodes.Input(input), {length, heads, dim})},
                       {IntsAttribute("perm", order)});
  };
  const std::string queries = by_head(0, {0, 2, 1, 3}), keys = by_head(1, {0, 2, 3, 1});
  const float factor = 1 / std::sqrt(static_cast<float>(dim));
  std::string scores = nodes.Inner(
      "Mul", {nodes.Inner("MatMul", {queries, keys}), nodes.Floats("factor", {}, {&factor, 1})});
  if (nodes.inputs() == 4) scores = nodes.Inner("Sub", {scores, Penalties(nodes, nodes.Input(3))});
  const std::string shares = nodes.Inner("Softmax", {scores}, {IntAttribute("axis", -1)});
  const std::string mixed = nodes.Inner("MatMul", {shares, by_head(2, {0, 2, 1, 3})});
  nodes.OutputReshape(nodes.Inner("Transpose", {mixed}, {IntsAttribute("perm", {0, 2, 1, 3})}));
}

// [b, n, 4 row] of U, V, Q and K -> [b, n, row].
void AddHstu(LayerNodes& nodes) {
  const auto& config = nodes.own<model::HstuConfig>();
  const size_t n = nodes.in().dims[0], row = nodes.in().dims[1] / 4, heads = config.heads;
  const auto length = static_cast<int64_t>(n), columns = static_cast<int64_t>(row);
  const auto groups = static_cast<int64_t>(heads);
  const std::string silu = SiluNodes(nodes, nodes.Input());
  const auto part = [&](int64_t i, const std::string& name) {
    return nodes.Inner(
        "Slice", {silu, nodes.Ints(name + "_begin", {i * columns}),
                  nodes.Ints(name + "_end", {(i + 1) * columns}), nodes.Ints(name + "_axis", {2})});
  };
  const auto by_head = [&](int64_t i, const std::string& name, const std::vector<int64_t>& order) {
    return nodes.Inner("Transpose",
                       {nodes.InnerReshape(part(i, name), {length, groups, columns / groups})},
                       {IntsAttribute("perm", order)});
  };
  const absl::Span<const float> of_distance = nodes.TakeWeights(heads * (2 * n - 1));
  std::vector<float> bias(heads * n * n), share(n * n);
  for (size_t at = 0; at < bias.size(); ++at) {
    const size_t head = at / n / n, i = at / n % n, j = at % n;
    bias[at] = of_distance[head * (2 * n - 1) + i + n - 1 - j];
    share[at % (n * n)] = config.causal && j > i ? 0.0f : 1.0f / static_cast<float>(n);
  }
  const std::string scores = nodes.Inner(
      "Add", {nodes.Inner("MatMul", {by_head(2, "q", {0, 2, 1, 3}), by_head(3, "k", {0, 2, 3, 1})}),
              nodes.Floats("bias", {heads, n, n}, bias)});
  std::string shares =
      nodes.Inner("Mul", {SiluNodes(nodes, scores), nodes.Floats("share", {n, n}, share)});
  if (nodes.inputs() == 2) shares = nodes.Inner("Mul", {shares, nodes.Input(1)});
  const std::string mixed =
      nodes.Inner("Transpose", {nodes.Inner("MatMul", {shares, by_head(1, "v", {0, 2, 1, 3})})},
                  {IntsAttribute("perm", {0, 2, 1, 3})});
  const std::string gamma = nodes.Weights("gamma", {row});
  const std::string normed = nodes.Inner(
      "LayerNormalization",
      {nodes.InnerReshape(mixed, {length, columns}), gamma, nodes.Weights("beta", {row})},
      {IntAttribute("axis", -1), FloatAttribute("epsilon", config.eps)});
  nodes.Output("Mul", {normed, part(0, "u")});
}

}  // namespace cistern
