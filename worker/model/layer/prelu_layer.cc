// PReLU: a ReLU with a trained slope below 0 for each column of the last dimension.
#include "cuda/op/dense/prelu.h"

#include "worker/model/config/layer_grammar.h"
#include "worker/model/layer/layer_configs.h"
#include "worker/model/layer/layer_list.h"
#include "worker/model/layer/layer_site.h"

namespace cistern::model {
namespace {

using namespace grammar;

class PreluLayer : public Layer {
 public:
  PreluLayer(Tensor* in, Tensor* out, Parameter slope)
      : Layer({in}, {out}),
        slope_(slope),
        columns_(out->shape.dims.back()),
        rows_(columns_ == 0 ? 0 : out->shape.size() / columns_) {}

  bool has_parameters() const override { return true; }
  bool can_replace_grad() const override { return true; }
  size_t ScratchFloats(size_t batch) const override {
    return op::PreluScratchFloats(rows_ * batch, columns_);
  }

  void Forward(const Step& step) override {
    op::Prelu(input().value(), step.parameters.weight(slope_), output().value(), rows_ * step.size,
              columns_, step.stream);
  }

  void Backward(const Step& step) override {
    op::PreluBackward(input().value(), step.parameters.weight(slope_), output().grad(),
                      input().write, input().grad(), step.parameters.grad(slope_),
                      rows_ * step.size, columns_, step.scratch, step.stream);
  }

 private:
  const Parameter slope_;
  const size_t columns_, rows_;  // of a sample
};

LayerOr MakePreluLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, 1, 1, 1));
  const Parameter slope = site.parameters().Add(
      site.shape().dims.back(), {WeightInit::Kind::kConstant, site.own<PreluConfig>().slope});
  return std::make_unique<PreluLayer>(site.bottoms()[0], site.Define(site.shape()), slope);
}

}  // namespace

LayerGrammar DescribePrelu() {
  return DenseLayerOf<PreluConfig>(
      {"PReLU", LayerOutput::kActivation},
      {Number({"slope", &PreluConfig::slope}, "first slope below 0, which is trained")
           .Default("0.25")},
      MakePreluLayer);
}

}  // namespace cistern::model
