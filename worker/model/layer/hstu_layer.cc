// HSTU: the pointwise attention of sequential recommenders (Zhai et al. 2024, "Actions Speak Louder
// than Words: Trillion-Parameter Sequential Transducers for Generative Recommendations", equations
// 1 to 3), without the two projections, which are InnerProduct layers before and behind it.
#include <algorithm>

#include "cuda/op/dense/batched_gemm.h"
#include "cuda/op/dense/elementwise.h"
#include "cuda/op/dense/layer_norm.h"
#include "cuda/op/dense/product.h"
#include "cuda/op/dense/silu_attention.h"
#include "cuda/op/dense/swap_axes.h"
#include "worker/model/config/layer_grammar.h"
#include "worker/model/layer/layer_configs.h"
#include "worker/model/layer/layer_list.h"
#include "worker/model/layer/layer_site.h"
#include "worker/model/layer/scratch.h"

namespace cistern::model {
namespace {

using namespace grammar;
using op::ConstValues;
using op::Transpose;
using op::Values;
using op::Write;

// The sizes of a sample.
struct HstuShape {
  size_t n, heads, dim;  // dim: of one head

  size_t row() const { return heads * dim; }
  size_t size() const { return n * row(); }
  size_t share_size() const { return heads * n * n; }
};

struct HstuParameters {
  Parameter bias, gamma, beta;  // [heads, 2 n - 1], [row], [row]
};

// y = LayerNorm(A V) * U with A = silu(Q K^T + bias of the distance) / n by head, where U, V, Q and
// K are the quarters of the columns of silu(x).
//
// Nothing but x is kept for the backward pass, which computes the rest again.
class HstuLayer : public Layer {
 public:
  // ins: x [b, n, 4 row], and the mask [b, 1, n, n] if there is one.
  HstuLayer(std::vector<Tensor*> ins, Tensor* out, const HstuShape& shape, bool causal, float eps,
            HstuParameters parameters)
      : Layer(std::move(ins), {out}),
        shape_(shape),
        causal_(causal),
        eps_(eps),
        parameters_(parameters) {}

  bool has_parameters() const override { return true; }

  // The most is in use in Backward.
  size_t ScratchFloats(size_t batch) const override {
    const size_t b = batch * output().shape.rows;
    return 4 * Scratch::Room(4 * b * shape_.size()) + 9 * Scratch::Room(b * shape_.size()) +
           3 * Scratch::Room(b * shape_.share_size()) +
           op::LayerNormScratchFloats(b * shape_.n, shape_.row());
  }

  void Forward(const Step& step) override {
    Scratch scratch(step.scratch, type());
    const Made made = Compute(step, scratch);
    const ConstValues factors[] = {made.normed, made.u};
    op::Product(factors, 2, output().value(), Count(step), step.stream);
  }

  // dU = dy N and dN = dy U, where N = LayerNorm(O) and O = A V; then as in an attention.
  void Backward(const Step& step) override {
    Scratch scratch(step.scratch, type());
    Parameters& all = step.parameters;
    const Made made = Compute(step, scratch);
    const size_t b = RowsOf(output(), step), count = Count(step);
    const auto [n, heads, dim] = shape_;
    const Values parts = scratch.Take(4 * count);  // gradients of U, V, Q and K
    const Values dnormed = scratch.Take(count), dmixed = scratch.Take(count);
    const ConstValues factors[] = {made.normed, made.u};
    op::ProductBackward(factors, 2, 1, output().grad(), Write::kOverwrite, parts, count,
                        step.stream);
    op::ProductBackward(factors, 2, 0, output().grad(), Write::kOverwrite, dnormed, count,
                        step.stream);
    op::LayerNormBackward(
        made.mixed, all.weight(parameters_.gamma), eps_, dnormed, Write::kOverwrite, dmixed,
        all.grad(parameters_.gamma), all.grad(parameters_.beta), b * n, shape_.row(),
        scratch.TakeFloats(op::LayerNormScratchFloats(b * n, shape_.row())), step.stream);
    const ConstValues dout = ByHead(dmixed, step, scratch);
    const Values dscores = scratch.Take(b * shape_.share_size());
    op::BatchedGemm(Transpose::kNo, Transpose::kYes, b * heads, n, n, dim, dout, made.v,
                    Write::kOverwrite, dscores, step.stream);
    op::SiluSharesBackward(AttentionOf(step), made.scores, dscores, dscores, step.stream);
    op::RelativeBiasGradient(dscores, all.grad(parameters_.bias), b, heads, n, step.stream);
    WriteByHead(Transpose::kYes, made.shares, dout, parts + count, step, scratch);
    WriteByHead(Transpose::kNo, dscores, made.k, parts + 2 * count, step, scratch);
    WriteByHead(Transpose::kYes, dscores, made.q, parts + 3 * count, step, scratch);
    if (input(0).grad() != nullptr) {
      const Values dsilu = scratch.Take(4 * count);
      op::SwapAxes(parts, Write::kOverwrite, dsilu, 1, 4, b * n, shape_.row(), step.stream);
      op::SiluBackward(input(0).value(), dsilu, input(0).write, input(0).grad(), 4 * count,
                       step.stream);
    }
    if (inputs().size() < 2 || input(1).grad() == nullptr) return;
    if (input(1).write == Write::kAccumulate) return;
    op::Fill(0, input(1).grad(), b * n * n, step.stream);  // a mask has no gradient
  }

 private:
  // What the forward pass makes. v, q and k: [b, heads, n, dim]; the others: [b, n, row].
  struct Made {
    ConstValues u, v, q, k, scores, shares, mixed, normed;
  };

  ElementType type() const { return output().storage->type; }
  size_t Count(const Step& step) const { return RowsOf(output(), step) * shape_.size(); }

  op::SiluAttention AttentionOf(const Step& step) {
    const ConstValues none(nullptr, type());
    return {step.parameters.weight(parameters_.bias),
            inputs().size() > 1 ? ConstValues(input(1).value()) : none,
            causal_,
            RowsOf(output(), step),
            shape_.heads,
            shape_.n};
  }

  Made Compute(const Step& step, Scratch& scratch) {
    const size_t b = RowsOf(output(), step), count = Count(step);
    const auto [n, heads, dim] = shape_;
    const Values silu = scratch.Take(4 * count), parts = scratch.Take(4 * count);
    op::Silu(input(0).value(), silu, 4 * count, step.stream);
    op::SwapAxes(silu, Write::kOverwrite, parts, 1, b * n, 4, shape_.row(), step.stream);
    const ConstValues v = ByHead(parts + count, step, scratch);
    const ConstValues q = ByHead(parts + 2 * count, step, scratch);
    const ConstValues k = ByHead(parts + 3 * count, step, scratch);
    const Values scores = scratch.Take(b * shape_.share_size());
    const Values shares = scratch.Take(b * shape_.share_size());
    op::BatchedGemm(Transpose::kNo, Transpose::kYes, b * heads, n, n, dim, q, k, Write::kOverwrite,
                    scores, step.stream);
    op::SiluShares(AttentionOf(step), scores, shares, step.stream);
    const Values mixed = scratch.Take(count), normed = scratch.Take(count);
    WriteByHead(Transpose::kNo, shares, v, mixed, step, scratch);
    op::LayerNorm(mixed, step.parameters.weight(parameters_.gamma),
                  step.parameters.weight(parameters_.beta), eps_, normed, b * n, shape_.row(),
                  step.stream);
    return {parts, v, q, k, scores, shares, mixed, normed};
  }

  // [b, n, heads, dim] as [b, heads, n, dim]; with one head they are the same.
  ConstValues ByHead(ConstValues x, const Step& step, Scratch& scratch) const {
    if (shape_.heads == 1) return x;
    const Values y = scratch.Take(Count(step));
    op::SwapAxes(x, Write::kOverwrite, y, RowsOf(output(), step), shape_.n, shape_.heads,
                 shape_.dim, step.stream);
    return y;
  }

  // Writes the product by head of `left`, [n, n], transposed or not, and `right`, [n, dim], to
  // `out`, [b, n, heads, dim].
  void WriteByHead(Transpose transpose, ConstValues left, ConstValues right, Values out,
                   const Step& step, Scratch scratch) const {
    const size_t b = RowsOf(output(), step);
    const auto [n, heads, dim] = shape_;
    const Values made = heads == 1 ? out : scratch.Take(Count(step));
    op::BatchedGemm(transpose, Transpose::kNo, b * heads, n, dim, n, left, right, Write::kOverwrite,
                    made, step.stream);
    if (heads == 1) return;
    op::SwapAxes(made, Write::kOverwrite, out, b, heads, n, dim, step.stream);
  }

  const HstuShape shape_;
  const bool causal_;
  const float eps_;
  const HstuParameters parameters_;
};

LayerOr MakeHstuLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, 2, 1, 1));
  CISTERN_RETURN_IF_ERROR(site.CheckRank(3));
  const TensorShape& x = site.shape();
  const auto& config = site.own<HstuConfig>();
  const size_t n = x.dims[0], columns = x.dims[1], heads = config.heads;
  if (n == 0 || columns == 0 || columns % (4 * heads) != 0) {
    return site.Error(absl::StrCat(
        "num_attention_heads is ", heads, " and bottom '", site.bottoms()[0]->name, "' is ",
        x.ToString(), ": its last dimension holds U, V, Q and K, each with as many columns for ",
        "every head, so it must be a multiple of ", 4 * heads));
  }
  if (site.bottoms().size() == 2 && site.shape(1) != TensorShape{x.rows, {1, n, n}}) {
    return site.Error(absl::StrCat("bottom '", site.bottoms()[1]->name, "' is ",
                                   site.shape(1).ToString(), "; the mask must be ",
                                   TensorShape{x.rows, {1, n, n}}.ToString(),
                                   ", a SequenceMask of these lengths"));
  }
  const HstuShape shape = {n, heads, columns / 4 / heads};
  const auto constant = [](double value) { return WeightInit{WeightInit::Kind::kConstant, value}; };
  HstuParameters parameters;
  parameters.bias = site.parameters().Add(heads * (2 * n - 1), constant(0));
  parameters.gamma = site.parameters().Add(shape.row(), constant(1));
  parameters.beta = site.parameters().Add(shape.row(), constant(0));
  return std::make_unique<HstuLayer>(site.bottoms(), site.Define({x.rows, {n, shape.row()}}), shape,
                                     config.causal, config.eps, parameters);
}

}  // namespace

LayerGrammar DescribeHstu() {
  return DenseLayerOf<HstuConfig>(
      "HSTU",
      {Count({"num_attention_heads", &HstuConfig::heads},
             "heads, each with its share of U, V, Q and K")
           .Default("1")
           .AtLeast(1)
           .AtMost(4096),
       Bool({"causal", &HstuConfig::causal},
            "a position attends to itself and those before it only")
           .Default("true"),
       Number({"eps", &HstuConfig::eps}, "added to the variance").Default("1e-5").Above(0)},
      MakeHstuLayer);
}

}  // namespace cistern::model
