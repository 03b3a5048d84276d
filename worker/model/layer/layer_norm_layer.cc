// LayerNorm (HugeCTR 3.x): normalization over the last dimension.
#include "cuda/op/dense/layer_norm.h"

#include "worker/model/config/layer_grammar.h"
#include "worker/model/layer/layer_configs.h"
#include "worker/model/layer/layer_list.h"
#include "worker/model/layer/layer_site.h"

namespace cistern::model {
namespace {

using namespace grammar;

class LayerNormLayer : public Layer {
 public:
  LayerNormLayer(Tensor* in, Tensor* out, Parameter gamma, Parameter beta, float eps)
      : Layer({in}, {out}),
        gamma_(gamma),
        beta_(beta),
        eps_(eps),
        columns_(out->shape.dims.back()),
        rows_(columns_ == 0 ? 0 : out->shape.size() / columns_) {}

  bool has_parameters() const override { return true; }
  size_t ScratchFloats(size_t batch) const override {
    return op::LayerNormScratchFloats(rows_ * batch, columns_);
  }

  void Forward(const Step& step) override {
    op::LayerNorm(input().value(), step.parameters.weight(gamma_), step.parameters.weight(beta_),
                  eps_, output().value(), rows_ * step.size, columns_, step.stream);
  }

  void Backward(const Step& step) override {
    Parameters& all = step.parameters;
    op::LayerNormBackward(input().value(), all.weight(gamma_), eps_, output().grad(), input().write,
                          input().grad(), all.grad(gamma_), all.grad(beta_), rows_ * step.size,
                          columns_, step.scratch, step.stream);
  }

 private:
  const Parameter gamma_, beta_;
  const float eps_;
  const size_t columns_, rows_;  // of a sample
};

const ObjectGrammar& LayerNormGrammar() {
  static const ObjectGrammar grammar{
      "ln_param",
      {Number({"eps", &LayerNormConfig::eps}, "added to the variance").Default("1e-5").Above(0),
       Init({"gamma_init", &LayerNormConfig::gamma_init}, "initial scales", "1"),
       Init({"beta_init", &LayerNormConfig::beta_init}, "initial shifts", "0")}};
  return grammar;
}

LayerOr MakeLayerNormLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, 1, 1, 1));
  const auto& config = site.own<LayerNormConfig>();
  const size_t columns = site.shape().dims.back();
  const auto init = [&](InitKind kind, size_t in, double otherwise) {
    return MakeWeightInit(kind, in, columns, {WeightInit::Kind::kConstant, otherwise},
                          site.exact_init());
  };
  const Parameter gamma = site.parameters().Add(columns, init(config.gamma_init, columns, 1));
  const Parameter beta = site.parameters().Add(columns, init(config.beta_init, 0, 0));
  return std::make_unique<LayerNormLayer>(site.bottoms()[0], site.Define(site.shape()), gamma, beta,
                                          config.eps);
}

}  // namespace

LayerGrammar DescribeLayerNorm() {
  return DenseLayerOf<LayerNormConfig>(
      {"LayerNorm", LayerOutput::kVectors},
      {Object("ln_param", JsonKind::kObject, LayerNormGrammar(), "constants").Default("{}")},
      MakeLayerNormLayer);
}

}  // namespace cistern::model
