// ReLU with an optional fused Dropout, Dropout alone, and ELU.
#include <cstdint>

#include "cuda/op/dense/copy_columns.h"
#include "cuda/op/dense/elu.h"
#include "cuda/op/dense/relu.h"
#include "worker/model/config/layer_grammar.h"
#include "worker/model/layer/dropout_draw.h"
#include "worker/model/layer/layer_configs.h"
#include "worker/model/layer/layer_list.h"
#include "worker/model/layer/layer_site.h"

namespace cistern::model {
namespace {

using namespace grammar;

class ReluLayer : public Layer {
 public:
  ReluLayer(const LayerSite& site, Tensor* out)
      : Layer({site.bottoms()[0]}, {out}), dropout_(site), columns_(out->shape.columns()) {}

  bool reads_outputs() const override { return true; }
  bool can_replace_input() const override { return true; }
  bool can_replace_grad() const override { return true; }

  void Forward(const Step& step) override {
    if (dropout_.rate() == 0) return Infer(step);
    op::ReluDropout(input().value(), dropout_.At(step, output().shape.rows), output().value(),
                    RowsOf(output(), step), columns_, step.stream);
  }

  void Infer(const Step& step) override {
    op::Relu(input().value(), output().value(), RowsOf(output(), step) * columns_, step.stream);
  }

  void Backward(const Step& step) override {
    const size_t count = RowsOf(output(), step) * columns_;
    if (dropout_.rate() == 0) {
      op::ReluBackward(output().value(), output().grad(), input().write, input().grad(), count,
                       step.stream);
    } else {
      op::ReluDropoutBackward(output().value(), output().grad(), dropout_.rate(), input().write,
                              input().grad(), count, step.stream);
    }
  }

 private:
  const DropoutSeries dropout_;
  const size_t columns_;
};

class DropoutLayer : public Layer {
 public:
  DropoutLayer(const LayerSite& site, Tensor* out)
      : Layer({site.bottoms()[0]}, {out}), dropout_(site), columns_(out->shape.columns()) {}

  bool can_replace_input() const override { return true; }
  bool can_replace_grad() const override { return true; }
  absl::Status Allocate(size_t batch, DeviceContext& device) override {
    return mask_.Grow(batch * output().shape.size(), device, "dropout masks");
  }

  void Forward(const Step& step) override {
    op::Dropout(input().value(), dropout_.At(step, output().shape.rows), output().value(),
                mask_.data(), RowsOf(output(), step), columns_, step.stream);
  }

  void Infer(const Step& step) override {
    if (input().value().data == output().value().data) return;
    const size_t rows = RowsOf(output(), step);
    op::CopyColumns(input().value(), columns_, op::Write::kOverwrite, output().value(), columns_,
                    rows, columns_, step.stream);
  }

  void Backward(const Step& step) override {
    op::DropoutBackward(output().grad(), mask_.data(), dropout_.rate(), input().write,
                        input().grad(), RowsOf(output(), step), columns_, step.stream);
  }

 private:
  const DropoutSeries dropout_;
  const size_t columns_;
  DeviceBuffer<uint8_t> mask_;  // [batch, floats]: 1 = kept
};

class EluLayer : public Layer {
 public:
  EluLayer(const LayerSite& site, Tensor* out)
      : Layer({site.bottoms()[0]}, {out}), alpha_(site.own<EluConfig>().alpha) {}

  bool can_replace_grad() const override { return true; }

  void Forward(const Step& step) override {
    op::Elu(input().value(), alpha_, output().value(), step.size * output().shape.size(),
            step.stream);
  }

  void Backward(const Step& step) override {
    op::EluBackward(input().value(), alpha_, output().grad(), input().write, input().grad(),
                    step.size * output().shape.size(), step.stream);
  }

 private:
  const float alpha_;
};

const ObjectGrammar& EluGrammar() {
  static const ObjectGrammar grammar{
      "elu_param",
      {Number({"alpha", &EluConfig::alpha}, "y = alpha * (exp(x) - 1) where x < 0").Required()}};
  return grammar;
}

LayerOr MakeReluLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, 1, 1, 1));
  return std::make_unique<ReluLayer>(site, site.Define(site.shape()));
}

LayerOr MakeDropoutLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, 1, 1, 1));
  if (site.own<DropoutConfig>().rate == 0) {
    site.DefineView(site.shape());
    return nullptr;
  }
  return std::make_unique<DropoutLayer>(site, site.Define(site.shape()));
}

LayerOr MakeEluLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, 1, 1, 1));
  return std::make_unique<EluLayer>(site, site.Define(site.shape()));
}

}  // namespace

LayerGrammar DescribeRelu() {
  return DenseLayer({"ReLU", LayerOutput::kActivation}, MakeReluLayer);
}

LayerGrammar DescribeElu() {
  return DenseLayerOf<EluConfig>(
      {"ELU", LayerOutput::kActivation},
      {Object("elu_param", JsonKind::kObject, EluGrammar(), "constants").Required()}, MakeEluLayer);
}

LayerGrammar DescribeDropout() {
  return DenseLayerOf<DropoutConfig>(
      {"Dropout", LayerOutput::kShape},
      {Number({"rate", &DropoutConfig::rate}, "fraction of the elements that training sets to zero")
           .Default("0.5")
           .Below(1)
           .ForTraining()},
      MakeDropoutLayer);
}

}  // namespace cistern::model
