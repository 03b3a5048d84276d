// PReLU_Dice (HugeCTR 3.x), the activation of Deep Interest Networks.
#include "cuda/op/dense/batch_norm.h"
#include "cuda/op/dense/dice.h"
#include "cuda/op/dense/elementwise.h"
#include "worker/model/config/layer_grammar.h"
#include "worker/model/layer/device_buffer.h"
#include "worker/model/layer/layer_configs.h"
#include "worker/model/layer/layer_list.h"
#include "worker/model/layer/layer_site.h"

namespace cistern::model {
namespace {

using namespace grammar;

// Trains with the statistics of the batch and predicts with running ones, as BatchNorm does: a
// prediction does not depend on the samples beside it.
class DiceLayer : public Layer {
 public:
  DiceLayer(const LayerSite& site, Tensor* out, Parameter running_mean, Parameter running_var)
      : Layer({site.bottoms()[0]}, {out}),
        alpha_(site.own<DiceConfig>().alpha),
        factor_(site.own<DiceConfig>().factor),
        eps_(site.own<DiceConfig>().eps),
        columns_(out->shape.columns()),
        running_mean_(running_mean),
        running_var_(running_var) {}

  size_t ScratchFloats(size_t batch) const override {
    return op::BatchNormScratchFloats(output().shape.rows * batch, columns_);
  }

  absl::Status Allocate(size_t, DeviceContext& device) override {
    for (DeviceFloats* one : {&mean_, &inv_std_, &ones_, &sum_, &weighted_sum_}) {
      CISTERN_RETURN_IF_ERROR(one->Grow(columns_, device, "PReLU_Dice"));
    }
    return absl::OkStatus();
  }

  void Forward(const Step& step) override {
    const size_t rows = RowsOf(output(), step);
    op::BatchNormStatistics(input().value(), factor_, eps_, mean_.data(), inv_std_.data(),
                            step.parameters.next_running(running_mean_),
                            step.parameters.next_running(running_var_), rows, columns_,
                            step.scratch, step.stream);
    op::Dice(input().value(), mean_.data(), inv_std_.data(), alpha_, output().value(), rows,
             columns_, step.stream);
  }

  void Infer(const Step& step) override {
    op::DiceInference(input().value(), step.parameters.running(running_mean_),
                      step.parameters.running(running_var_), eps_, alpha_, output().value(),
                      RowsOf(output(), step), columns_, step.stream);
  }

  // The gradient by z replaces that of the output, which nothing reads after this.
  void Backward(const Step& step) override {
    if (input().grad() == nullptr) return;
    const size_t rows = RowsOf(output(), step);
    op::DiceBackward(input().value(), mean_.data(), inv_std_.data(), alpha_, output().grad(),
                     input().write, input().grad(), output().grad(), rows, columns_, step.stream);
    op::Fill(1, ones_.data(), columns_, step.stream);
    op::BatchNormBackward(input().value(), op::ConstValues(nullptr), output().grad(), mean_.data(),
                          inv_std_.data(), ones_.data(), {}, op::Write::kAccumulate, input().grad(),
                          weighted_sum_.data(), sum_.data(), rows, columns_, step.scratch,
                          step.stream);
  }

 private:
  const float alpha_, factor_, eps_;
  const size_t columns_;
  const Parameter running_mean_, running_var_;
  DeviceFloats mean_, inv_std_;  // of the batch
  DeviceFloats ones_, sum_,
      weighted_sum_;  // the scales of BatchNormBackward, and its other results
};

const ObjectGrammar& DiceGrammar() {
  static const ObjectGrammar grammar{
      "prelu_dice_param",
      {Number({"alpha", &DiceConfig::alpha},
              "y = p x + (1 - p) alpha x, where p is the logistic function of x "
              "normalized by its mean and variance in the batch")
           .Required(),
       Number({"eps", &DiceConfig::eps}, "added to the variance").Default("1e-8").Above(0),
       Number({"factor", &DiceConfig::factor},
              "running = (1 - factor) * running + factor * batch, for predictions")
           .Default("0.1")
           .AtMost(1)
           .ForTraining()}};
  return grammar;
}

LayerOr MakeDiceLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, 1, 1, 1));
  CISTERN_RETURN_IF_ERROR(site.CheckRank(2));
  const size_t columns = site.shape().columns();
  const Parameter mean = site.parameters().AddRunning(columns, 0);
  const Parameter variance = site.parameters().AddRunning(columns, 1);
  return std::make_unique<DiceLayer>(site, site.Define(site.shape()), mean, variance);
}

}  // namespace

LayerGrammar DescribeDice() {
  return DenseLayerOf<DiceConfig>(
      {"PReLU_Dice", LayerOutput::kActivation},
      {Object("prelu_dice_param", JsonKind::kObject, DiceGrammar(), "constants").Required()},
      MakeDiceLayer);
}

}  // namespace cistern::model
