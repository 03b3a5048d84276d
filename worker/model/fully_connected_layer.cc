// InnerProduct: y = x W + b; FusedInnerProduct: y = ReLU(x W + b).
#include "cuda/op/fully_connected.h"

#include <cmath>

#include "cuda/op/relu.h"
#include "worker/model/layer_site.h"

namespace cistern {
namespace {

class FullyConnectedLayer : public Layer {
 public:
  FullyConnectedLayer(Tensor* in, Tensor* out, Parameter weight, Parameter bias, bool relu)
      : Layer({in}, {out}),
        weight_(weight),
        bias_(bias),
        in_(in->shape.columns()),
        out_(out->shape.columns()),
        relu_(relu) {}

  bool has_parameters() const override { return true; }
  bool reads_outputs() const override { return relu_; }
  size_t ScratchFloats(size_t batch) const override {
    return op::FullyConnectedScratchFloats(output().shape.rows * batch, in_, out_);
  }

  void Forward(const Step& step) override {
    op::FullyConnected(input().value(), step.parameters.rounded(weight_),
                       step.parameters.rounded(bias_), output().value(), RowsOf(output(), step),
                       in_, out_, step.stream);
    if (!relu_) return;
    op::Relu(output().value(), output().value(), RowsOf(output(), step) * out_, step.stream);
  }

  // All readers of the output have written its gradient by now, and nobody else reads it.
  void Backward(const Step& step) override {
    Parameters& parameters = step.parameters;
    if (relu_) {
      op::ReluBackward(output().value(), output().grad(), op::Write::kOverwrite, output().grad(),
                       RowsOf(output(), step) * out_, step.stream);
    }
    op::FullyConnectedBackward(input().value(), parameters.rounded(weight_), output().grad(),
                               input().write, input().grad(), parameters.grad(weight_),
                               parameters.grad(bias_), RowsOf(output(), step), in_, out_,
                               step.scratch, step.stream);
  }

 private:
  const Parameter weight_, bias_;
  const size_t in_, out_;
  const bool relu_;
};

}  // namespace

LayerOr MakeFullyConnectedLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, 1, 1, 1));
  CISTERN_RETURN_IF_ERROR(site.CheckRank(2));
  const LayerConfig& config = site.config();
  const size_t in = site.shape().columns(), out = config.num_output;
  const bool exact = site.exact_init();
  const WeightInit weights = MakeWeightInit(InitKind::kXavierNorm, in, out, WeightInit(), exact);
  const WeightInit biases = {WeightInit::Kind::kNormal, std::sqrt(1.0 / static_cast<double>(out))};
  const Parameter weight =
      site.parameters().Add(in * out, MakeWeightInit(config.weight_init, in, out, weights, exact));
  const Parameter bias =
      site.parameters().Add(out, MakeWeightInit(config.bias_init, 0, out, biases, exact));
  return std::make_unique<FullyConnectedLayer>(site.bottoms()[0],
                                               site.Define({site.shape().rows, {out}}), weight,
                                               bias, config.type == "FusedInnerProduct");
}

}  // namespace cistern
