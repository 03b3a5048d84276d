// Sigmoid (HugeCTR 3.x). A loss contains its own.
#include "cuda/op/dense/logistic.h"
#include "worker/model/config/layer_grammar.h"
#include "worker/model/layer/layer_list.h"
#include "worker/model/layer/layer_site.h"

namespace cistern::model {
namespace {

class SigmoidLayer : public Layer {
 public:
  SigmoidLayer(Tensor* in, Tensor* out) : Layer({in}, {out}) {}

  bool can_replace_grad() const override { return true; }

  void Forward(const Step& step) override {
    op::Logistic(input().value(), output().value(), step.size * output().shape.size(), step.stream);
  }

  void Backward(const Step& step) override {
    op::LogisticBackward(input().value(), output().grad(), input().write, input().grad(),
                         step.size * output().shape.size(), step.stream);
  }
};

LayerOr MakeSigmoidLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, 1, 1, 1));
  return std::make_unique<SigmoidLayer>(site.bottoms()[0], site.Define(site.shape()));
}

}  // namespace

LayerGrammar DescribeSigmoid() {
  return DenseLayer({"Sigmoid", LayerOutput::kActivation}, MakeSigmoidLayer);
}

}  // namespace cistern::model
