// ProductLogit: the logit of the product of two probabilities, each given by its logit (ESMM, Ma et
// al. 2018: an impression leads to a purchase if it is clicked, and the click leads to one).
#include "cuda/op/dense/product_logit.h"
#include "worker/model/config/layer_grammar.h"
#include "worker/model/layer/layer_list.h"
#include "worker/model/layer/layer_site.h"

namespace cistern::model {
namespace {

class ProductLogitLayer : public Layer {
 public:
  ProductLogitLayer(std::vector<Tensor*> ins, Tensor* out) : Layer(std::move(ins), {out}) {}

  void Forward(const Step& step) override {
    op::ProductLogit(input(0).value(), input(1).value(), output().value(),
                     step.size * output().shape.size(), step.stream);
  }

  void Backward(const Step& step) override {
    for (size_t i = 0; i < 2; ++i) {
      if (input(i).grad() == nullptr) continue;
      op::ProductLogitBackward(input(i).value(), input(1 - i).value(), output().grad(),
                               input(i).write, input(i).grad(), step.size * output().shape.size(),
                               step.stream);
    }
  }
};

LayerOr MakeProductLogitLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(2, 2, 1, 1));
  CISTERN_RETURN_IF_ERROR(site.CheckSameShapes());
  return std::make_unique<ProductLogitLayer>(site.bottoms(), site.Define(site.shape()));
}

}  // namespace

LayerGrammar DescribeProductLogit() {
  return DenseLayer("ProductLogit", MakeProductLogitLayer);
}

}  // namespace cistern::model
