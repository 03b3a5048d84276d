// GRU (HugeCTR 3.x): a gated recurrent unit over the sequence of a sample.
#include "cuda/op/dense/gru_cell.h"

#include <algorithm>

#include "cuda/op/dense/bias_gradient.h"
#include "cuda/op/dense/elementwise.h"
#include "cuda/op/dense/fully_connected.h"
#include "cuda/op/dense/gemm.h"
#include "cuda/op/dense/swap_axes.h"
#include "worker/model/config/layer_grammar.h"
#include "worker/model/layer/device_buffer.h"
#include "worker/model/layer/layer_configs.h"
#include "worker/model/layer/layer_list.h"
#include "worker/model/layer/layer_site.h"
#include "worker/model/layer/scratch.h"

namespace cistern::model {
namespace {

using namespace grammar;
using op::ConstValues;
using op::Values;
using op::Write;

struct GruShape {
  size_t steps, in, n;  // the length of a sequence, columns of an input and of an output
};

// W [in, 3 n], R [n, 3 n] and b [3 n], each of parts r, i and m (gru_cell.h).
struct GruParameters {
  Parameter input, recurrent, bias;
};

// y(t) = GruCell(x(t) W + b, y(t - 1) R, y(t - 1)). Inside, time comes before the samples, so that
// the rows of a step are one matrix.
class GruLayer : public Layer {
 public:
  GruLayer(Tensor* in, Tensor* out, const GruShape& shape, const GruParameters& parameters)
      : Layer({in}, {out}), shape_(shape), parameters_(parameters) {}

  bool has_parameters() const override { return true; }

  size_t ScratchFloats(size_t batch) const override {
    const size_t rows = output().shape.rows * batch, all = rows * shape_.steps;
    return LibraryFloats(all) + 2 * Scratch::Room(all * shape_.in) +
           2 * Scratch::Room(all * 3 * shape_.n) + 2 * Scratch::Room(all * shape_.n);
  }

  absl::Status Allocate(size_t batch, DeviceContext& device) override {
    const size_t all = output().shape.rows * batch * shape_.steps;
    return kept_.Grow(Scratch::Room(all * shape_.n) + 2 * Scratch::Room(all * 3 * shape_.n), device,
                      "GRU");
  }

  void Forward(const Step& step) override {
    Scratch kept(kept_.data(), type()), scratch(step.scratch, type());
    Compute(step, Take(kept, step), scratch, op::FullyConnected);
  }

  void Infer(const Step& step) override {
    Scratch scratch(step.scratch, type());
    const Sequences of = Take(scratch, step);
    Compute(step, of, scratch, InferProduct);
  }

  // From the last step to the first, with dy(t) the sum of the gradient of the output and of what
  // the step after it passes back. The gradients of the products replace what the forward pass
  // kept; those of the weights are one product over all steps.
  void Backward(const Step& step) override {
    const auto [steps, in, n] = shape_;
    const size_t b = RowsOf(output(), step), all = b * steps;
    Parameters& weights = step.parameters;
    Scratch kept(kept_.data(), type()), scratch(step.scratch, type());
    float* const library = scratch.TakeFloats(LibraryFloats(all));
    const Sequences of = Take(kept, step);
    const Values dy = scratch.Take(all * n), dx = scratch.Take(all * in);
    ByTime(output().grad(), dy, n, step);
    for (size_t t = steps; t-- > 0;) {
      const Values gates = of.gates + t * b * 3 * n, product = of.products + t * b * 3 * n;
      const Values out = dy + t * b * n;
      op::GruCellBackward(gates, t == 0 ? ConstValues(nullptr) : ConstValues(product),
                          Before(of, t, b), out, gates, product, out, b, n, step.stream);
      if (t == 0) break;
      const Values before = dy + (t - 1) * b * n;
      op::Accumulate(out, before, b * n, step.stream);
      op::Gemm(op::Transpose::kNo, op::Transpose::kYes, b, n, 3 * n, product,
               weights.rounded(parameters_.recurrent), Write::kAccumulate, before, step.stream);
    }
    const Values x = scratch.Take(all * in);
    ByTime(input().value(), x, in, step);
    op::BiasGradient(Values(nullptr), of.gates, weights.grad(parameters_.bias), all, 3 * n, library,
                     step.stream);
    const bool wants = input().grad() != nullptr;
    op::FullyConnectedBackward(x, weights.rounded(parameters_.input), of.gates, Write::kOverwrite,
                               wants ? dx : Values(nullptr), weights.grad(parameters_.input), all,
                               in, 3 * n, library, step.stream);
    op::FullyConnectedBackward(of.y, weights.rounded(parameters_.recurrent),
                               of.products + b * 3 * n, Write::kOverwrite, Values(nullptr),
                               weights.grad(parameters_.recurrent), all - b, n, 3 * n, library,
                               step.stream);
    if (!wants) return;
    op::SwapAxes(dx, input().write, input().grad(), 1, steps, b, in, step.stream);
  }

 private:
  // By step: the outputs, [steps, b, n], and the arguments of GruCell, [steps, b, 3 n].
  struct Sequences {
    Values y, gates, products;
  };

  ElementType type() const { return output().storage->type; }

  size_t LibraryFloats(size_t rows) const {
    const auto [steps, in, n] = shape_;
    return Scratch::Room(std::max({op::FullyConnectedScratchFloats(type(), rows, in, 3 * n),
                                   op::FullyConnectedScratchFloats(type(), rows, n, 3 * n),
                                   op::BiasGradientScratchFloats(rows, 3 * n)}));
  }

  Sequences Take(Scratch& from, const Step& step) const {
    const size_t all = RowsOf(output(), step) * shape_.steps;
    const Values y = from.Take(all * shape_.n), gates = from.Take(all * 3 * shape_.n);
    return {y, gates, from.Take(all * 3 * shape_.n)};
  }

  // The outputs of the step before t; null at the first.
  ConstValues Before(const Sequences& of, size_t t, size_t b) const {
    return t == 0 ? ConstValues(nullptr) : ConstValues(of.y + (t - 1) * b * shape_.n);
  }

  // [b, steps, columns] to [steps, b, columns].
  void ByTime(ConstValues x, Values y, size_t columns, const Step& step) const {
    op::SwapAxes(x, Write::kOverwrite, y, 1, RowsOf(output(), step), shape_.steps, columns,
                 step.stream);
  }

  static void InferProduct(ConstValues x, ConstValues weight, ConstValues bias, Values y, size_t b,
                           size_t k, size_t n, float* scratch, Stream& stream) {
    op::FullyConnectedInfer(x, weight, bias, /*relu=*/false, y, b, k, n, scratch, stream);
  }

  // multiply: FullyConnected, or what predictions take instead.
  template <typename Multiply>
  void Compute(const Step& step, const Sequences& of, Scratch& scratch, const Multiply& multiply) {
    const auto [steps, in, n] = shape_;
    const size_t b = RowsOf(output(), step), all = b * steps;
    Parameters& weights = step.parameters;
    float* const library = scratch.TakeFloats(LibraryFloats(all));
    const Values x = scratch.Take(all * in);
    ByTime(input().value(), x, in, step);
    multiply(x, weights.rounded(parameters_.input), weights.rounded(parameters_.bias), of.gates,
             all, in, 3 * n, library, step.stream);
    for (size_t t = 0; t < steps; ++t) {
      const ConstValues before = Before(of, t, b);
      const Values product = of.products + t * b * 3 * n;
      if (t > 0) {
        multiply(before, weights.rounded(parameters_.recurrent), ConstValues(nullptr), product, b,
                 n, 3 * n, library, step.stream);
      }
      op::GruCell(of.gates + t * b * 3 * n, t == 0 ? ConstValues(nullptr) : ConstValues(product),
                  before, of.y + t * b * n, b, n, step.stream);
    }
    op::SwapAxes(of.y, Write::kOverwrite, output().value(), 1, steps, b, n, step.stream);
  }

  const GruShape shape_;
  const GruParameters parameters_;
  DeviceFloats kept_;
};

const ObjectGrammar& GruGrammar() {
  static const ObjectGrammar grammar{
      "gru_param",
      {Count({"num_output", &GruConfig::num_output}, "columns of an output")
           .Required()
           .AtLeast(1)
           .AtMost(1 << 16),
       Count({"SeqLength", &GruConfig::steps},
             "steps of a sequence; needed for a bottom of two dimensions")
           .Otherwise("dimension 1 of the bottom")
           .AtLeast(1)
           .AtMost(65536),
       Count({"vector_size", &GruConfig::vector_size},
             "columns of an input; needed for a bottom of two dimensions")
           .Otherwise("dimension 2 of the bottom")
           .AtLeast(1)
           .AtMost(1 << 20),
       Anything("batchsize", "ignored: solver.batchsize is the size of a batch"),
       Init({"weight_init", &GruConfig::weight_init}, "initial weights", "XavierUniform"),
       Init({"bias_init", &GruConfig::bias_init}, "initial biases", "0")}};
  return grammar;
}

// The sizes of the sequences. A bottom of two dimensions holds each sequence in a row.
absl::StatusOr<GruShape> ReadGruShape(const LayerSite& site) {
  const auto& config = site.own<GruConfig>();
  const TensorShape& in = site.shape();
  GruShape shape = {config.steps, config.vector_size, config.num_output};
  const bool is_flat = in.rank() == 2;
  if (is_flat && (shape.steps == 0 || shape.in == 0)) {
    return site.Error(absl::StrCat("bottom '", site.bottoms()[0]->name, "' is ", in.ToString(),
                                   ": give SeqLength and vector_size, or put a Reshape with "
                                   "time_step before it"));
  }
  if (!is_flat) {
    CISTERN_RETURN_IF_ERROR(site.CheckRank(3));
    if (shape.steps == 0) shape.steps = in.dims[0];
    if (shape.in == 0) shape.in = in.dims[1];
  }
  const std::vector<size_t> dims = is_flat ? std::vector<size_t>{shape.steps * shape.in}
                                           : std::vector<size_t>{shape.steps, shape.in};
  if (in.dims == dims) return shape;
  return site.Error(absl::StrCat("SeqLength is ", shape.steps, ", vector_size is ", shape.in,
                                 " and bottom '", site.bottoms()[0]->name, "' is ", in.ToString(),
                                 ": it must be ", TensorShape{in.rows, dims}.ToString()));
}

LayerOr MakeGruLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, 1, 1, 1));
  CISTERN_ASSIGN_OR_RETURN(const GruShape shape, ReadGruShape(site));
  const auto& config = site.own<GruConfig>();
  const bool exact = site.exact_init();
  const auto weights = [&](size_t in) {
    const WeightInit otherwise =
        MakeWeightInit(InitKind::kXavierUniform, in, shape.n, WeightInit(), exact);
    return MakeWeightInit(config.weight_init, in, shape.n, otherwise, exact);
  };
  GruParameters parameters;
  parameters.input = site.parameters().Add(shape.in * 3 * shape.n, weights(shape.in));
  parameters.recurrent = site.parameters().Add(shape.n * 3 * shape.n, weights(shape.n));
  parameters.bias = site.parameters().Add(
      3 * shape.n, MakeWeightInit(config.bias_init, 0, shape.n, WeightInit(), exact));
  TensorShape out = {site.shape().rows, {shape.steps, shape.n}};
  if (site.shape().rank() == 2) out.dims = {shape.steps * shape.n};
  return std::make_unique<GruLayer>(site.bottoms()[0], site.Define(out), shape, parameters);
}

}  // namespace

LayerGrammar DescribeGru() {
  return DenseLayerOf<GruConfig>(
      "GRU",
      {Object("gru_param", JsonKind::kObject, GruGrammar(), "sizes and initial weights")
           .Required()},
      MakeGruLayer);
}

}  // namespace cistern::model
