// InnerProduct: y = x W + b, over the last dimension. FusedInnerProduct, or an InnerProduct with a
// fused ReLU: y = ReLU(x W + b).
//
// The sweep that sums the bias gradient also applies the backward pass of the layer's ReLU, unless
// the next layer has a single output: its gradient is an outer product, which costs as much with
// the ReLU as without it (Tensor::grad_behind_relu). If few inputs need no gradient, the same sweep
// also sums the gradient of the weights.
#include "cuda/op/dense/fully_connected.h"

#include <algorithm>
#include <cmath>

#include "cuda/op/dense/bias_gradient.h"
#include "cuda/op/dense/narrow_backward.h"
#include "cuda/op/dense/packed_weights.h"
#include "worker/model/config/config_readers.h"
#include "worker/model/config/json_document.h"
#include "worker/model/config/layer_grammar.h"
#include "worker/model/layer/frozen_weights.h"
#include "worker/model/layer/layer_configs.h"
#include "worker/model/layer/layer_list.h"
#include "worker/model/layer/layer_site.h"

namespace cistern::model {
namespace {

using namespace grammar;

class FullyConnectedLayer : public Layer, public FrozenWeights {
 public:
  FullyConnectedLayer(Tensor* in, Tensor* out, Parameter weight, Parameter bias, bool relu)
      : Layer({in}, {out}),
        weight_(weight),
        bias_(bias),
        in_(in->shape.dims.back()),
        out_(out->shape.dims.back()),
        rows_(out->shape.size() / out_),
        relu_(relu) {
    out->ends_in_relu = relu;
  }

  bool has_parameters() const override { return true; }
  bool reads_outputs() const override { return relu_; }
  bool can_undo_relu() const override { return out_ == 1; }
  bool can_read_wide() const override { return out_ > 1; }
  size_t ScratchFloats(size_t batch) const override {
    const size_t rows = rows_ * batch;
    const size_t floats = std::max(out_ + op::BiasGradientScratchFloats(rows, out_),
                                   op::FullyConnectedScratchFloats(type(), rows, in_, out_));
    return UndoesNarrow()
               ? std::max(floats, op::NarrowBackwardScratchFloats(type(), rows, in_, out_))
               : floats;
  }

  void Forward(const Step& step) override {
    const op::ConstValues weight = step.parameters.rounded(weight_);
    if (input().tensor->is_wide) {
      return op::FullyConnectedWide(input().value(), weight, BiasOf(step), relu_, output().value(),
                                    rows_ * step.size, in_, out_, step.scratch, step.stream);
    }
    const auto compute = relu_ ? op::FullyConnectedRelu : op::FullyConnected;
    compute(input().value(), weight, BiasOf(step), output().value(), rows_ * step.size, in_, out_,
            step.scratch, step.stream);
  }
  void Freeze(Parameters& parameters, Stream& stream) override {
    if (stream.device() != DeviceKind::kCpu || type() != ElementType::kFloat || out_ == 1) return;
    packed_ = op::PackedWeights(parameters.weight(weight_), in_, out_);
  }
  void Infer(const Step& step) override {
    if (packed_.panels() != nullptr) {
      return op::FullyConnectedInferPacked(
          static_cast<const float*>(input().value().data), step.parameters.weight(weight_), packed_,
          HasBias() ? step.parameters.weight(bias_) : nullptr, relu_,
          static_cast<float*>(output().value().data), rows_ * step.size, in_, out_);
    }
    if (input().tensor->is_wide) return Forward(step);
    op::FullyConnectedInfer(input().value(), step.parameters.rounded(weight_), BiasOf(step), relu_,
                            output().value(), rows_ * step.size, in_, out_, step.scratch,
                            step.stream);
  }

  // All readers of the output have written its gradient by now, and no other layer reads it;
  // therefore BiasGradient can change it in place.
  void Backward(const Step& step) override {
    Parameters& parameters = step.parameters;
    const size_t rows = rows_ * step.size;
    const Tensor& in = *input().tensor;
    if (UndoesNarrow()) {
      return op::NarrowBackward(
          in.value(), output().value(), output().grad(), parameters.grad(weight_),
          HasBias() ? parameters.grad(bias_) : nullptr, rows, in_, out_, step.scratch, step.stream);
    }
    const bool undoes_relu = relu_ && !output().grad_behind_relu;
    if (HasBias() || undoes_relu) {  // without a bias its gradient goes nowhere
      op::BiasGradient(undoes_relu ? output().value() : op::Values(nullptr), output().grad(),
                       HasBias() ? parameters.grad(bias_)
                                 : step.scratch + op::BiasGradientScratchFloats(rows, out_),
                       rows, out_, step.scratch, step.stream);
    }
    const op::ConstValues weight = parameters.rounded(weight_);
    if (in.grad_behind_relu) {
      op::DotBackwardBehindRelu(in.value(), weight, output().grad(), in.grad(),
                                parameters.grad(weight_), rows, in_, step.scratch, step.stream);
    } else {
      const auto backward =
          in.is_wide ? op::FullyConnectedWideBackward : op::FullyConnectedBackward;
      backward(in.value(), weight, output().grad(), input().write, input().grad(),
               parameters.grad(weight_), rows, in_, out_, step.scratch, step.stream);
    }
  }

 private:
  ElementType type() const { return output().storage->type; }

  // Whether op::NarrowBackward is the whole backward pass.
  bool UndoesNarrow() const {
    return relu_ && !output().grad_behind_relu && !input().wants_grad && !input().tensor->is_wide &&
           in_ <= op::kMaxNarrowInputs && out_ > 1;
  }
  bool HasBias() const { return bias_.count > 0; }
  op::ConstValues BiasOf(const Step& step) const {
    return HasBias() ? step.parameters.rounded(bias_) : op::ConstValues(nullptr);
  }

  const Parameter weight_, bias_;
  const size_t in_, out_, rows_;  // rows of a sample
  const bool relu_;
  op::PackedWeights packed_;  // once they are frozen
};

const ObjectGrammar& FullyConnectedGrammar() {
  static const ObjectGrammar grammar{
      "fc_param",
      {Count({"num_output", &FullyConnectedConfig::num_output}, "columns of the output")
           .Required()
           .AtLeast(1)
           .AtMost(1 << 20),
       Init({"weight_init", &FullyConnectedConfig::weight_init}, "initial weights", "XavierNorm"),
       Init({"bias_init", &FullyConnectedConfig::bias_init}, "initial biases",
            "normal, standard deviation sqrt(1 / num_output)"),
       Number(
           {"bias_value", &FullyConnectedConfig::bias_value},
           "all initial biases, instead of bias_init; in the layer before the loss, the log-odds "
           "of the positive labels let training start at their share")
           .Otherwise("bias_init decides")
           .ForTraining()
           .AtLeast(-100)
           .AtMost(100),
       Bool({"use_bias", &FullyConnectedConfig::use_bias}, "false: y = x W").Default("true")}};
  return grammar;
}

absl::Status ReadFullyConnected(const Json& json, const std::string& path, LayerConfig* layer) {
  const bool use_bias = layer->own<FullyConnectedConfig>().use_bias;
  for (const char* key : {"bias_init", "bias_value"}) {
    if (use_bias || !json.at("fc_param").contains(key)) continue;
    return ConfigError(absl::StrCat(path, ".fc_param.", key),
                       "the layer has no bias: leave it out, or set use_bias to true");
  }
  return absl::OkStatus();
}

LayerOr MakeFullyConnectedLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, 1, 1, 1));
  const auto& config = site.own<FullyConnectedConfig>();
  TensorShape shape = site.shape();
  const size_t in = shape.dims.back(), out = config.num_output;
  shape.dims.back() = out;
  const bool exact = site.exact_init();
  const WeightInit weights =
      MakeWeightInit(site.torch_init() ? InitKind::kTorchLinear : InitKind::kXavierNorm, in, out,
                     WeightInit(), exact);
  const WeightInit biases =
      site.torch_init()
          ? weights
          : WeightInit{WeightInit::Kind::kNormal, std::sqrt(1.0 / static_cast<double>(out))};
  const size_t bias_in = DependsOnInputs(config.bias_init) ? in : 0;
  const bool relu = site.config().type == "FusedInnerProduct" || site.epilogue().relu != nullptr;
  const Parameter weight =
      site.parameters().Add(in * out, MakeWeightInit(config.weight_init, in, out, weights, exact));
  const WeightInit initial_bias =
      config.bias_value ? WeightInit{WeightInit::Kind::kNamed, *config.bias_value}
                        : MakeWeightInit(config.bias_init, bias_in, out, biases, exact);
  const Parameter bias = config.use_bias ? site.parameters().Add(out, initial_bias) : Parameter();
  return std::make_unique<FullyConnectedLayer>(site.bottoms()[0], site.Define(shape), weight, bias,
                                               relu);
}

}  // namespace

LayerGrammar DescribeInnerProduct() {
  return DenseLayerOf<FullyConnectedConfig>(
      "InnerProduct",
      {Object("fc_param", JsonKind::kObject, FullyConnectedGrammar(), "size and initial weights")
           .Required()},
      MakeFullyConnectedLayer, ReadFullyConnected);
}

LayerGrammar DescribeFusedInnerProduct() {
  return DenseLayerOf<FullyConnectedConfig>(
      "FusedInnerProduct",
      {Object("fc_param", JsonKind::kObject, FullyConnectedGrammar(), "size and initial weights")
           .Required()},
      MakeFullyConnectedLayer, ReadFullyConnected,
      "FusedInnerProduct is InnerProduct followed by ReLU, of any size and in any precision");
}

}  // namespace cistern::model
