// Softmax over the last dimension (HugeCTR 3.x, without its mask).
#include "cuda/op/dense/softmax.h"
#include "worker/model/config/layer_grammar.h"
#include "worker/model/layer/layer_configs.h"
#include "worker/model/layer/layer_list.h"
#include "worker/model/layer/layer_site.h"

namespace cistern::model {
namespace {

using namespace grammar;

class SoftmaxLayer : public Layer {
 public:
  SoftmaxLayer(Tensor* in, Tensor* out, float factor)
      : Layer({in}, {out}),
        factor_(factor),
        columns_(out->shape.dims.back()),
        rows_(columns_ == 0 ? 0 : out->shape.size() / columns_) {}

  bool reads_outputs() const override { return true; }
  bool can_replace_input() const override { return true; }
  bool can_replace_grad() const override { return true; }

  void Forward(const Step& step) override {
    op::Softmax(factor_, input().value(), output().value(), rows_ * step.size, columns_,
                step.stream);
  }

  void Backward(const Step& step) override {
    op::SoftmaxBackward(factor_, output().value(), output().grad(), input().write, input().grad(),
                        rows_ * step.size, columns_, step.stream);
  }

 private:
  const float factor_;
  const size_t columns_, rows_;  // of a sample
};

LayerOr MakeSoftmaxLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, 1, 1, 1));
  return std::make_unique<SoftmaxLayer>(site.bottoms()[0], site.Define(site.shape()),
                                        site.own<SoftmaxConfig>().factor);
}

}  // namespace

LayerGrammar DescribeSoftmax() {
  return DenseLayerOf<SoftmaxConfig>(
      {"Softmax", LayerOutput::kVectors},
      {Number({"factor", &SoftmaxConfig::factor},
              "multiplies the input: softmax(factor * x) over the last "
              "dimension")
           .Default("1")
           .Above(0)},
      MakeSoftmaxLayer);
}

}  // namespace cistern::model
