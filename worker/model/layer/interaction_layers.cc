// Feature interactions: Multiply, FmOrder2, Interaction and MultiCross.
#include <algorithm>

#include "cuda/op/dense/dot_interaction.h"
#include "cuda/op/dense/fm_order2.h"
#include "cuda/op/dense/multi_cross.h"
#include "cuda/op/dense/multiply.h"
#include "worker/model/config/config_readers.h"
#include "worker/model/config/json_document.h"
#include "worker/model/layer/layer_list.h"
#include "worker/model/layer/layer_site.h"

namespace cistern {
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

  void Forward(const Step& step) override {
    op::FmOrder2(input().value(), output().value(), RowsOf(output(), step), slots_, dim_,
                 step.stream);
  }

  void Backward(const Step& step) override {
    op::FmOrder2Backward(input().value(), output().grad(), input().write, input().grad(),
                         RowsOf(output(), step), slots_, dim_, step.stream);
  }

 private:
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

class MultiCrossLayer : public Layer {
 public:
  // parameters: weight and bias of each cross, in order.
  MultiCrossLayer(Tensor* in, Tensor* out, Parameter parameters, size_t layers)
      : Layer({in}, {out}),
        parameters_(parameters),
        layers_(layers),
        columns_(in->shape.columns()) {}

  bool has_parameters() const override { return true; }
  size_t ScratchFloats(size_t batch) const override {
    return op::MultiCrossScratchFloats(output().shape.rows * batch, layers_, columns_);
  }

  void Forward(const Step& step) override {
    op::MultiCross(input().value(), step.parameters.weight(parameters_), output().value(),
                   RowsOf(output(), step), layers_, columns_, step.scratch, step.stream);
  }

  void Backward(const Step& step) override {
    op::MultiCrossBackward(input().value(), step.parameters.weight(parameters_), output().grad(),
                           input().write, input().grad(), step.parameters.grad(parameters_),
                           RowsOf(output(), step), layers_, columns_, step.scratch, step.stream);
  }

 private:
  const Parameter parameters_;
  const size_t layers_, columns_;
};

const ObjectGrammar& MultiCrossGrammar() {
  static const ObjectGrammar grammar{
      "mc_param",
      {Count("num_layers", "number of crosses").Required().AtLeast(1).AtMost(1024),
       Init("weight_init", "initial weights", "XavierUniform"),
       Init("bias_init", "initial biases", "0")}};
  return grammar;
}

absl::Status ReadMultiply(const Json& json, const std::string& path, LayerConfig* layer) {
  layer->weight_dims = json.at("weight_dims").get<std::vector<uint32_t>>();
  layer->weight_init = ReadInit(json, "weight_init");
  if (layer->weight_dims.size() == 2) return absl::OkStatus();
  return ConfigError(path + ".weight_dims",
                     absl::StrCat("expected [S, E], found ", json.at("weight_dims").dump()));
}

absl::Status ReadFmOrder2(const Json& json, const std::string&, LayerConfig* layer) {
  layer->out_dim = json.at("out_dim");
  return absl::OkStatus();
}

absl::Status ReadMultiCross(const Json& json, const std::string&, LayerConfig* layer) {
  const Json& constants = json.at("mc_param");
  layer->weight_init = ReadInit(constants, "weight_init");
  layer->bias_init = ReadInit(constants, "bias_init");
  layer->num_layers = constants.at("num_layers");
  return absl::OkStatus();
}

LayerOr MakeMultiplyLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, 1, 1, 1));
  CISTERN_RETURN_IF_ERROR(site.CheckRank(2));
  const LayerConfig& config = site.config();
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
  const size_t dim = site.config().out_dim;
  if (site.shape().columns() % dim != 0) {
    return site.Error(absl::StrCat("out_dim is ", dim, " and bottom '", site.bottoms()[0]->name,
                                   "' is ", site.shape().ToString(),
                                   ": out_dim must divide its width"));
  }
  return std::make_unique<FmOrder2Layer>(site.bottoms()[0],
                                         site.Define({site.shape().rows, {dim}}));
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

LayerOr MakeMultiCrossLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, 1, 1, 1));
  CISTERN_RETURN_IF_ERROR(site.CheckRank(2));
  const LayerConfig& config = site.config();
  const size_t columns = site.shape().columns();
  const bool exact = site.exact_init();
  const WeightInit xavier =
      MakeWeightInit(InitKind::kXavierUniform, columns, columns, WeightInit(), exact);
  Parameter all;
  for (uint32_t layer = 0; layer < config.num_layers; ++layer) {
    const Parameter weight = site.parameters().Add(
        columns, MakeWeightInit(config.weight_init, columns, columns, xavier, exact));
    site.parameters().Add(columns,
                          MakeWeightInit(config.bias_init, 0, columns, WeightInit(), exact));
    if (layer == 0) all = {weight.offset, 2 * columns * config.num_layers};
  }
  return std::make_unique<MultiCrossLayer>(site.bottoms()[0], site.Define(site.shape()), all,
                                           config.num_layers);
}

}  // namespace

LayerGrammar DescribeMultiply() {
  return DenseLayer("Multiply",
                    {MakeKey("weight_dims", JsonKind::kCounts, "[S, E]: x[S] becomes S * E columns")
                         .Required()
                         .AtLeast(1),
                     Init("weight_init", "initial weights", "XavierUniform")},
                    ReadMultiply, MakeMultiplyLayer);
}

LayerGrammar DescribeFmOrder2() {
  return DenseLayer("FmOrder2", {Count("out_dim", "floats per factor").Required().AtLeast(1)},
                    ReadFmOrder2, MakeFmOrder2Layer);
}

LayerGrammar DescribeInteraction() {
  return DenseLayer("Interaction", {}, nullptr, MakeInteractionLayer);
}

LayerGrammar DescribeMultiCross() {
  return DenseLayer(
      "MultiCross",
      {Object("mc_param", JsonKind::kObject, MultiCrossGrammar(), "depth and initial weights")
           .Required()},
      ReadMultiCross, MakeMultiCrossLayer);
}

}  // namespace cistern
