// Feature interactions: Multiply, FmOrder2 and Interaction.
#include <algorithm>

#include "cuda/op/dense/dot_interaction.h"
#include "cuda/op/dense/fm_order2.h"
#include "cuda/op/dense/multiply.h"
#include "worker/model/config/config_readers.h"
#include "worker/model/config/json_document.h"
#include "worker/model/config/layer_grammar.h"
#include "worker/model/layer/layer_configs.h"
#include "worker/model/layer/layer_list.h"
#include "worker/model/layer/layer_site.h"

namespace cistern::model {
namespace {

using namespace grammar;

class MultiplyLayer : public Layer {
 public:
  MultiplyLayer(Tensor* in, Tensor* out, Parameter weight)
      : Layer({in}, {out}),
        weight_(weight),
        slots_(in->shape.columns()),
        dim_(weight.count / std::max<size_t>(1, slots_)) {}

  bool has_parameters() const override { return true; }
  size_t ScratchFloats(size_t batch) const override {
    return op::MultiplyScratchFloats(output().shape.rows * batch, slots_, dim_);
  }

  void Forward(const Step& step) override {
    op::Multiply(input().value(), step.parameters.weight(weight_), output().value(),
                 RowsOf(output(), step), slots_, dim_, step.stream);
  }

  void Backward(const Step& step) override {
    op::MultiplyBackward(input().value(), step.parameters.weight(weight_), output().grad(),
                         input().write, input().grad(), step.parameters.grad(weight_),
                         RowsOf(output(), step), slots_, dim_, step.scratch, step.stream);
  }

 private:
  const Parameter weight_;
  const size_t slots_, dim_;
};

class FmOrder2Layer : public Layer {
 public:
  FmOrder2Layer(Tensor* in, Tensor* out)
      : Layer({in}, {out}),
        dim_(out->shape.columns()),
        slots_(in->shape.columns() / out->shape.columns()) {}

  bool can_read_strided() const override { return output().shape.rows == 1; }

  void Forward(const Step& step) override {
    op::FmOrder2(input().value(), stride(), output().value(), RowsOf(output(), step), slots_, dim_,
                 step.stream);
  }

  void Backward(const Step& step) override {
    op::FmOrder2Backward(input().value(), stride(), output().grad(), input().write, input().grad(),
                         RowsOf(output(), step), slots_, dim_, step.stream);
  }

 private:
  size_t stride() const { return input().tensor->storage->stride() / output().shape.rows; }

  const size_t dim_, slots_;
};

class InteractionLayer : public Layer {
 public:
  InteractionLayer(Tensor* mlp, Tensor* embedding, Tensor* out)
      : Layer({mlp, embedding}, {out}),
        slots_(embedding->shape.dims[0]),
        dim_(embedding->shape.dims[1]) {}

  void Forward(const Step& step) override {
    op::DotInteraction(input(0).value(), input(1).value(), output().value(), RowsOf(output(), step),
                       slots_, dim_, step.stream);
  }

  void Backward(const Step& step) override {
    op::DotInteractionBackward(input(0).value(), input(1).value(), output().grad(), input(0).write,
                               input(0).grad(), input(1).write, input(1).grad(),
                               RowsOf(output(), step), slots_, dim_, step.stream);
  }

 private:
  const size_t slots_, dim_;
};

absl::Status ReadMultiply(const Json& json, const std::string& path, LayerConfig* layer) {
  if (layer->own<MultiplyConfig>().weight_dims.size() == 2) return absl::OkStatus();
  return ConfigError(path + ".weight_dims",
                     absl::StrCat("expected [S, E], found ", json.at("weight_dims").dump()));
}

LayerOr MakeMultiplyLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, 1, 1, 1));
  CISTERN_RETURN_IF_ERROR(site.CheckRank(2));
  const auto& config = site.own<MultiplyConfig>();
  const size_t slots = config.weight_dims[0], dim = config.weight_dims[1];
  if (site.shape().columns() != slots) {
    return site.Error(absl::StrCat("weight_dims is [", slots, ", ", dim, "] and bottom '",
                                   site.bottoms()[0]->name, "' is ", site.shape().ToString(),
                                   ": their widths differ"));
  }
  const WeightInit fallback =
      MakeWeightInit(InitKind::kXavierUniform, slots, slots * dim, WeightInit(), site.exact_init());
  const Parameter weight = site.parameters().Add(
      slots * dim,
      MakeWeightInit(config.weight_init, slots, slots * dim, fallback, site.exact_init()));
  return std::make_unique<MultiplyLayer>(site.bottoms()[0],
                                         site.Define({site.shape().rows, {slots * dim}}), weight);
}

LayerOr MakeFmOrder2Layer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, 1, 1, 1));
  CISTERN_RETURN_IF_ERROR(site.CheckRank(2));
  const size_t dim = site.own<FmOrder2Config>().out_dim;
  if (site.shape().columns() % dim != 0) {
    return site.Error(absl::StrCat("out_dim is ", dim, " and bottom '", site.bottoms()[0]->name,
                                   "' is ", site.shape().ToString(),
                                   ": out_dim must divide its width"));
  }
  return std::make_unique<FmOrder2Layer>(site.bottoms()[0],
                                         site.Define({site.shape().rows, {dim}}));
}

// The second top of 3.x carries a gradient from a second bottom of MLP: HugeCTR's way to overlap
// two products. Nothing is computed for it.
absl::Status ReadInteraction(const Json&, const std::string&, LayerConfig* layer) {
  if (layer->tops.size() == 2) layer->tops.pop_back();
  return absl::OkStatus();
}

LayerOr MakeInteractionLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(2, 2, 1, 1));
  CISTERN_RETURN_IF_ERROR(site.CheckRank(2, 0));
  CISTERN_RETURN_IF_ERROR(site.CheckRank(3, 1));
  const TensorShape &mlp = site.shape(0), &embedding = site.shape(1);
  const size_t slots = embedding.dims[0], dim = embedding.dims[1];
  if (mlp.rows != embedding.rows || mlp.columns() != dim) {
    return site.Error(absl::StrCat("bottoms '", site.bottoms()[0]->name, "' ", mlp.ToString(),
                                   " and '", site.bottoms()[1]->name, "' ", embedding.ToString(),
                                   " must have the same first and last dimension"));
  }
  return std::make_unique<InteractionLayer>(
      site.bottoms()[0], site.bottoms()[1],
      site.Define({mlp.rows, {op::DotInteractionColumns(slots, dim)}}));
}

}  // namespace

LayerGrammar DescribeMultiply() {
  return DenseLayerOf<MultiplyConfig>(
      "Multiply",
      {MakeKey({"weight_dims", &MultiplyConfig::weight_dims}, JsonKind::kCounts,
               "[S, E]: x[S] becomes S * E columns")
           .Required()
           .AtLeast(1),
       Init({"weight_init", &MultiplyConfig::weight_init}, "initial weights", "XavierUniform")},
      MakeMultiplyLayer, ReadMultiply);
}

LayerGrammar DescribeFmOrder2() {
  return DenseLayerOf<FmOrder2Config>(
      "FmOrder2",
      {Count({"out_dim", &FmOrder2Config::out_dim}, "floats per factor").Required().AtLeast(1)},
      MakeFmOrder2Layer);
}

LayerGrammar DescribeInteraction() {
  return DenseLayer("Interaction", MakeInteractionLayer, ReadInteraction);
}

}  // namespace cistern::model
