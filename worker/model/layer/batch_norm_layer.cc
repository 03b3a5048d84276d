// BatchNorm with an optional fused ReLU and Dropout.
#include "cuda/op/dense/batch_norm.h"

#include "worker/model/config/layer_grammar.h"
#include "worker/model/layer/dropout_draw.h"
#include "worker/model/layer/layer_configs.h"
#include "worker/model/layer/layer_list.h"
#include "worker/model/layer/layer_site.h"

namespace cistern::model {
namespace {

using namespace grammar;

struct BatchNormParameters {
  Parameter gamma, beta;
  Parameter running_mean, running_var;
};

class BatchNormLayer : public Layer {
 public:
  BatchNormLayer(const LayerSite& site, Tensor* out, const BatchNormParameters& parameters)
      : Layer({site.bottoms()[0]}, {out}),
        parameters_(parameters),
        factor_(site.own<BatchNormConfig>().factor),
        eps_(site.own<BatchNormConfig>().eps),
        columns_(out->shape.columns()),
        relu_(site.epilogue().relu != nullptr),
        dropout_(site) {}

  bool has_parameters() const override { return true; }
  bool reads_outputs() const override { return relu_; }
  bool can_replace_grad() const override { return true; }
  size_t ScratchFloats(size_t batch) const override {
    return op::BatchNormScratchFloats(output().shape.rows * batch, columns_);
  }

  absl::Status Allocate(size_t, DeviceContext& device) override {
    CISTERN_RETURN_IF_ERROR(mean_.Grow(columns_, device, "batch norm"));
    return inv_std_.Grow(columns_, device, "batch norm");
  }

  void Forward(const Step& step) override {
    Parameters& all = step.parameters;
    const size_t rows = RowsOf(output(), step);
    op::BatchNormStatistics(input().value(), factor_, eps_, mean_.data(), inv_std_.data(),
                            all.next_running(parameters_.running_mean),
                            all.next_running(parameters_.running_var), rows, columns_, step.scratch,
                            step.stream);
    op::BatchNormForward(input().value(), mean_.data(), inv_std_.data(),
                         all.weight(parameters_.gamma), all.weight(parameters_.beta),
                         EpilogueOf(step), output().value(), rows, columns_, step.stream);
  }

  void Infer(const Step& step) override {
    Parameters& all = step.parameters;
    op::BatchNormInference(input().value(), all.running(parameters_.running_mean),
                           all.running(parameters_.running_var), eps_,
                           all.weight(parameters_.gamma), all.weight(parameters_.beta), relu_,
                           output().value(), RowsOf(output(), step), columns_, step.stream);
  }

  void Backward(const Step& step) override {
    Parameters& all = step.parameters;
    op::BatchNormBackward(input().value(), output().value(), output().grad(), mean_.data(),
                          inv_std_.data(), all.weight(parameters_.gamma), EpilogueOf(step),
                          input().write, input().grad(), all.grad(parameters_.gamma),
                          all.grad(parameters_.beta), RowsOf(output(), step), columns_,
                          step.scratch, step.stream);
  }

 private:
  op::BatchNormEpilogue EpilogueOf(const Step& step) const {
    return {relu_, dropout_.At(step, output().shape.rows)};
  }

  const BatchNormParameters parameters_;
  const float factor_, eps_;
  const size_t columns_;
  const bool relu_;
  const DropoutSeries dropout_;
  DeviceFloats mean_, inv_std_;  // of the batch
};

const ObjectGrammar& BatchNormGrammar() {
  static const ObjectGrammar grammar{
      "bn_param",
      {Number({"factor", &BatchNormConfig::factor},
              "running = (1 - factor) * running + factor * batch")
           .Default("0.1")
           .AtMost(1)
           .ForTraining(),
       Number({"eps", &BatchNormConfig::eps}, "added to the variance").Default("1e-5").Above(0),
       Init({"gamma_init", &BatchNormConfig::gamma_init}, "initial scales", "1"),
       Init({"beta_init", &BatchNormConfig::beta_init}, "initial shifts", "0")}};
  return grammar;
}

LayerOr MakeBatchNormLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, 1, 1, 1));
  CISTERN_RETURN_IF_ERROR(site.CheckRank(2));
  const auto& config = site.own<BatchNormConfig>();
  const size_t columns = site.shape().columns();
  const auto init = [&](InitKind kind, size_t in, double otherwise) {
    return MakeWeightInit(kind, in, columns, {WeightInit::Kind::kConstant, otherwise},
                          site.exact_init());
  };
  BatchNormParameters parameters;
  parameters.gamma = site.parameters().Add(columns, init(config.gamma_init, columns, 1));
  parameters.beta = site.parameters().Add(columns, init(config.beta_init, 0, 0));
  parameters.running_mean = site.parameters().AddRunning(columns, 0);
  parameters.running_var = site.parameters().AddRunning(columns, 1);
  return std::make_unique<BatchNormLayer>(site, site.Define(site.shape()), parameters);
}

}  // namespace

LayerGrammar DescribeBatchNorm() {
  return DenseLayerOf<BatchNormConfig>(
      {"BatchNorm", LayerOutput::kShape},
      {Object("bn_param", JsonKind::kObject, BatchNormGrammar(), "constants").Default("{}")},
      MakeBatchNormLayer);
}

}  // namespace cistern::model
