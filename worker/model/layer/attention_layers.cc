// SequenceMask and MultiHeadAttention (HugeCTR 3.x): the attention of Transformers (Vaswani et al.
// 2017), without the projections, which are InnerProduct layers before it.
#include <algorithm>
#include <cmath>

#include "cuda/op/dense/batched_gemm.h"
#include "cuda/op/dense/elementwise.h"
#include "cuda/op/dense/sequence_mask.h"
#include "cuda/op/dense/softmax.h"
#include "cuda/op/dense/swap_axes.h"
#include "worker/model/config/layer_grammar.h"
#include "worker/model/layer/device_buffer.h"
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

class SequenceMaskLayer : public Layer {
 public:
  SequenceMaskLayer(std::vector<Tensor*> lengths, Tensor* out)
      : Layer(std::move(lengths), {out}), queries_(out->shape.dims[1]), keys_(out->shape.dims[2]) {}

  void Forward(const Step& step) override {
    op::SequenceMask(input(0).value(), input(1).value(), output().value(), RowsOf(output(), step),
                     queries_, keys_, step.stream);
  }

  // A length that a layer computes has no gradient.
  void Backward(const Step& step) override {
    for (const Input& in : inputs()) {
      if (in.grad() == nullptr || in.write == Write::kAccumulate) continue;
      op::Fill(0, in.grad(), RowsOf(*in.tensor, step), step.stream);
    }
  }

 private:
  const size_t queries_, keys_;
};

// The sizes of an attention in a sample.
struct AttentionShape {
  size_t heads, queries, keys, dim;  // dim: of one head

  size_t query_size() const { return queries * heads * dim; }
  size_t key_size() const { return keys * heads * dim; }
  size_t share_size() const { return heads * queries * keys; }
};

// O = P V with P = softmax(Q K^T / sqrt(dim)) by head, where the columns that the mask names get no
// share. Q, K and V are [b, length, heads, dim] and are computed on as [b, heads, length, dim].
class MultiHeadAttentionLayer : public Layer {
 public:
  // ins: Q, K, V, and the mask [b, 1, queries, keys] if there is one.
  MultiHeadAttentionLayer(std::vector<Tensor*> ins, Tensor* out, const AttentionShape& shape)
      : Layer(std::move(ins), {out}),
        shape_(shape),
        factor_(1.0f / std::sqrt(static_cast<float>(shape.dim))) {}

  // The most is in use in Backward, where the shares are kept elsewhere.
  size_t ScratchFloats(size_t batch) const override {
    const size_t queries = Scratch::Room(batch * output().shape.rows * shape_.query_size());
    const size_t keys = Scratch::Room(batch * output().shape.rows * shape_.key_size());
    const size_t shares = Scratch::Room(batch * output().shape.rows * shape_.share_size());
    return 3 * queries + 4 * keys + shares;
  }

  absl::Status Allocate(size_t batch, DeviceContext& device) override {
    return shares_.Grow(Scratch::Room(batch * output().shape.rows * shape_.share_size()), device,
                        "attention");
  }

  void Forward(const Step& step) override {
    Scratch scratch(step.scratch, type());
    Compute(step, Values{shares_.data(), type()}, scratch);
  }
  void Infer(const Step& step) override {
    Scratch scratch(step.scratch, type());
    const Values shares = scratch.Take(RowsOf(output(), step) * shape_.share_size());
    Compute(step, shares, scratch);
  }

  // With dP = dO V^T, dV = P^T dO, and dS the gradient of the scores: dQ = dS K, dK = dS^T Q.
  void Backward(const Step& step) override {
    const auto [heads, queries, keys, dim] = shape_;
    const size_t b = RowsOf(output(), step), products = b * heads;
    Scratch scratch(step.scratch, type());
    const Values shares = {shares_.data(), type()};
    const ConstValues dout = ByHead(output().grad(), queries, step, scratch);
    const ConstValues q = ByHead(input(0).value(), queries, step, scratch);
    const ConstValues k = ByHead(input(1).value(), keys, step, scratch);
    const ConstValues v = ByHead(input(2).value(), keys, step, scratch);
    const Values dscores = scratch.Take(b * shape_.share_size());
    op::BatchedGemm(Transpose::kNo, Transpose::kYes, products, queries, keys, dim, dout, v,
                    Write::kOverwrite, dscores, step.stream);
    op::SoftmaxBackward(factor_, shares, dscores, Write::kOverwrite, dscores, products * queries,
                        keys, step.stream);
    WriteGradient(0, {Transpose::kNo, queries, keys}, dscores, k, step, scratch);
    WriteGradient(1, {Transpose::kYes, keys, queries}, dscores, q, step, scratch);
    WriteGradient(2, {Transpose::kYes, keys, queries}, shares, dout, step, scratch);
    if (inputs().size() < 4 || input(3).grad() == nullptr) return;
    if (input(3).write == Write::kAccumulate) return;
    op::Fill(0, input(3).grad(), b * queries * keys, step.stream);  // a mask has no gradient
  }

 private:
  // The product of a [length, terms] matrix by head, transposed or not, and a [terms, dim] one.
  struct GradientProduct {
    Transpose transpose;
    size_t length, terms;
  };

  ElementType type() const { return output().storage->type; }

  void Compute(const Step& step, Values shares, Scratch& scratch) {
    const auto [heads, queries, keys, dim] = shape_;
    const size_t b = RowsOf(output(), step), products = b * heads;
    const ConstValues q = ByHead(input(0).value(), queries, step, scratch);
    const ConstValues k = ByHead(input(1).value(), keys, step, scratch);
    const ConstValues v = ByHead(input(2).value(), keys, step, scratch);
    op::BatchedGemm(Transpose::kNo, Transpose::kYes, products, queries, keys, dim, q, k,
                    Write::kOverwrite, shares, step.stream);
    if (inputs().size() == 4) {
      op::MaskedSoftmax(factor_, shares, input(3).value(), shares, b, heads, queries, keys,
                        step.stream);
    } else {
      op::Softmax(factor_, shares, shares, products * queries, keys, step.stream);
    }
    const Values out = heads == 1 ? output().value() : scratch.Take(b * shape_.query_size());
    op::BatchedGemm(Transpose::kNo, Transpose::kNo, products, queries, dim, keys, shares, v,
                    Write::kOverwrite, out, step.stream);
    if (heads == 1) return;
    op::SwapAxes(out, Write::kOverwrite, output().value(), b, heads, queries, dim, step.stream);
  }

  // [b, length, heads, dim] as [b, heads, length, dim]; with one head they are the same.
  ConstValues ByHead(ConstValues x, size_t length, const Step& step, Scratch& scratch) const {
    if (shape_.heads == 1) return x;
    const size_t b = RowsOf(output(), step);
    const Values y = scratch.Take(b * length * shape_.heads * shape_.dim);
    op::SwapAxes(x, Write::kOverwrite, y, b, length, shape_.heads, shape_.dim, step.stream);
    return y;
  }

  // Writes the gradient of input i: the product of `left` and `right` by head.
  void WriteGradient(size_t i, const GradientProduct& product, ConstValues left, ConstValues right,
                     const Step& step, Scratch scratch) const {
    const Input& in = input(i);
    if (in.grad() == nullptr) return;
    const auto [heads, queries, keys, dim] = shape_;
    const size_t b = RowsOf(output(), step);
    const Values out = heads == 1 ? in.grad() : scratch.Take(b * product.length * heads * dim);
    op::BatchedGemm(product.transpose, Transpose::kNo, b * heads, product.length, dim,
                    product.terms, left, right, heads == 1 ? in.write : Write::kOverwrite, out,
                    step.stream);
    if (heads == 1) return;
    op::SwapAxes(out, in.write, in.grad(), b, heads, product.length, dim, step.stream);
  }

  const AttentionShape shape_;
  const float factor_;
  DeviceFloats shares_;  // P of the forward pass
};

LayerOr MakeSequenceMaskLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(2, 2, 1, 1));
  for (size_t i = 0; i < 2; ++i) {
    if (site.shape(i) == TensorShape{1, {1}}) continue;
    return site.Error(absl::StrCat("bottom '", site.bottoms()[i]->name, "' is ",
                                   site.shape(i).ToString(),
                                   "; it must be [b, 1], the length of a sample's sequence: put a "
                                   "Slice before it"));
  }
  const auto& config = site.own<SequenceMaskConfig>();
  return std::make_unique<SequenceMaskLayer>(site.bottoms(),
                                             site.Define({1, {1, config.queries, config.keys}}));
}

// Describes the bottoms of an attention: "'q' [b, 3, 4], 'k' [b, 5, 4]".
std::string ShapesOfBottoms(const LayerSite& site) {
  std::string text;
  for (size_t i = 0; i < site.bottoms().size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", "'", site.bottoms()[i]->name, "' ",
                    site.shape(i).ToString());
  }
  return text;
}

LayerOr MakeMultiHeadAttentionLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(3, 4, 1, 1));
  for (size_t i = 0; i < 3; ++i) CISTERN_RETURN_IF_ERROR(site.CheckRank(3, i));
  const TensorShape &q = site.shape(0), &k = site.shape(1), &v = site.shape(2);
  if (q.rows != k.rows || q.dims[1] != k.dims[1] || k != v) {
    return site.Error(absl::StrCat("bottoms are ", ShapesOfBottoms(site),
                                   "; they must be [b, m, h], [b, n, h] and [b, n, h]"));
  }
  const size_t queries = q.dims[0], keys = k.dims[0], hidden = q.dims[1];
  if (site.bottoms().size() == 4 && site.shape(3) != TensorShape{q.rows, {1, queries, keys}}) {
    return site.Error(absl::StrCat("bottoms are ", ShapesOfBottoms(site), "; the mask must be ",
                                   TensorShape{q.rows, {1, queries, keys}}.ToString(),
                                   ", a SequenceMask of these lengths"));
  }
  const size_t heads = site.own<MultiHeadAttentionConfig>().heads;
  if (hidden == 0 || hidden % heads != 0) {
    return site.Error(absl::StrCat("num_attention_heads is ", heads, " and bottom '",
                                   site.bottoms()[0]->name, "' is ", q.ToString(),
                                   ": it must divide the last dimension"));
  }
  return std::make_unique<MultiHeadAttentionLayer>(
      site.bottoms(), site.Define(q), AttentionShape{heads, queries, keys, hidden / heads});
}

}  // namespace

LayerGrammar DescribeSequenceMask() {
  return DenseLayerOf<SequenceMaskConfig>(
      "SequenceMask",
      {Count({"max_sequence_len_from", &SequenceMaskConfig::queries},
             "rows of the mask: the longest sequence of "
             "queries")
           .Default("1")
           .AtLeast(1)
           .AtMost(65536),
       Count({"max_sequence_len_to", &SequenceMaskConfig::keys},
             "columns: the longest sequence of keys")
           .Default("1")
           .AtLeast(1)
           .AtMost(65536)},
      MakeSequenceMaskLayer);
}

LayerGrammar DescribeMultiHeadAttention() {
  return DenseLayerOf<MultiHeadAttentionConfig>(
      {"MultiHeadAttention", LayerOutput::kVectors},
      {Count({"num_attention_heads", &MultiHeadAttentionConfig::heads},
             "heads, each with its share of the last dimension")
           .Default("1")
           .AtLeast(1)
           .AtMost(4096),
       Bool("transpose_b", "3.x: no effect, as there: keys are transposed")
           .Otherwise("unset")
           .Note("no effect: keys are always transposed")},
      MakeMultiHeadAttentionLayer);
}

}  // namespace cistern::model
