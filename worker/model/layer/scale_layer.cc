// Scale (HugeCTR 3.x), which repeats what it reads: each value (axis 0) or each row (axis 1).
#include "cuda/op/dense/reduce_sum.h"
#include "worker/model/config/layer_grammar.h"
#include "worker/model/layer/layer_configs.h"
#include "worker/model/layer/layer_list.h"
#include "worker/model/layer/layer_site.h"

namespace cistern::model {
namespace {

using namespace grammar;

class ScaleLayer : public Layer {
 public:
  // Each of the `outer` * batch blocks of `inner` elements is repeated `times` times.
  ScaleLayer(Tensor* in, Tensor* out, size_t outer, size_t times, size_t inner)
      : Layer({in}, {out}), outer_(outer), times_(times), inner_(inner) {}

  void Forward(const Step& step) override {
    op::ScaledRepeat(1, input().value(), op::Write::kOverwrite, output().value(),
                     outer_ * step.size, times_, inner_, step.stream);
  }

  void Backward(const Step& step) override {
    op::ScaledSum(1, output().grad(), input().write, input().grad(), outer_ * step.size, times_,
                  inner_, step.stream);
  }

 private:
  const size_t outer_, times_, inner_;
};

const ObjectGrammar& ScaleGrammar() {
  static const ObjectGrammar grammar{
      "scale_param",
      {Count({"axis", &ScaleConfig::axis},
             "0: each value is repeated, and [b, n] becomes [b, n * factor]; 1: each row "
             "is repeated, and [b, n] becomes [b * factor, n]")
           .Required()
           .AtMost(1),
       Count({"factor", &ScaleConfig::factor}, "repetitions").Required().AtLeast(1).AtMost(65536)}};
  return grammar;
}

LayerOr MakeScaleLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, 1, 1, 1));
  CISTERN_RETURN_IF_ERROR(site.CheckRank(2));
  const TensorShape& in = site.shape();
  const auto& config = site.own<ScaleConfig>();
  const size_t times = config.factor, columns = in.columns();
  Tensor* const bottom = site.bottoms()[0];
  if (config.axis == 0) {
    return std::make_unique<ScaleLayer>(bottom, site.Define({in.rows, {columns * times}}),
                                        in.size(), times, 1);
  }
  return std::make_unique<ScaleLayer>(bottom, site.Define({in.rows * times, {columns}}), in.rows,
                                      times, columns);
}

}  // namespace

LayerGrammar DescribeScale() {
  return DenseLayerOf<ScaleConfig>(
      "Scale",
      {Object("scale_param", JsonKind::kObject, ScaleGrammar(), "what is repeated").Required()},
      MakeScaleLayer);
}

}  // namespace cistern::model
