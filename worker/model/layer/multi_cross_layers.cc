// MultiCross: the cross networks of Deep & Cross (Wang et al. 2017) and, with projection_dim, of
// DCN V2 (Wang et al. 2021, section 3.3).
#include <algorithm>

#include "cuda/op/dense/bias_gradient.h"
#include "cuda/op/dense/elementwise.h"
#include "cuda/op/dense/fully_connected.h"
#include "cuda/op/dense/multi_cross.h"
#include "cuda/op/dense/product.h"
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

class MultiCrossLayer : public Layer {
 public:
  // parameters: weight and bias of each cross, in order.
  MultiCrossLayer(Tensor* in, Tensor* out, Parameter parameters, size_t layers)
      : Layer({in}, {out}),
        parameters_(parameters),
        layers_(layers),
        columns_(in->shape.columns()) {}

  bool has_parameters() const override { return true; }
  size_t ScratchFloats(size_t batch) const override {
    return op::MultiCrossScratchFloats(output().shape.rows * batch, layers_, columns_);
  }

  void Forward(const Step& step) override {
    op::MultiCross(input().value(), step.parameters.weight(parameters_), output().value(),
                   RowsOf(output(), step), layers_, columns_, step.scratch, step.stream);
  }

  void Backward(const Step& step) override {
    op::MultiCrossBackward(input().value(), step.parameters.weight(parameters_), output().grad(),
                           input().write, input().grad(), step.parameters.grad(parameters_),
                           RowsOf(output(), step), layers_, columns_, step.scratch, step.stream);
  }

 private:
  const Parameter parameters_;
  const size_t layers_, columns_;
};

// The parameters of a cross: U [n, rank], V [rank, n], bias [n].
struct LowRankCross {
  Parameter u, v, bias;
};

// x(l + 1) = x(0) * z(l) + x(l), with h(l) = x(l) U(l) and z(l) = h(l) V(l) + bias(l).
class LowRankCrossLayer : public Layer {
 public:
  LowRankCrossLayer(Tensor* in, Tensor* out, std::vector<LowRankCross> crosses, size_t rank)
      : Layer({in}, {out}),
        crosses_(std::move(crosses)),
        rank_(rank),
        columns_(in->shape.columns()) {}

  bool has_parameters() const override { return true; }
  size_t ScratchFloats(size_t batch) const override {
    const size_t rows = output().shape.rows * batch;
    return LibraryFloats(rows) + Scratch::Room(rows * rank_) + 3 * Scratch::Room(rows * columns_);
  }

  // x(l), h(l) and z(l) of each cross.
  absl::Status Allocate(size_t batch, DeviceContext& device) override {
    const size_t rows = output().shape.rows * batch;
    return kept_.Grow(
        crosses_.size() * (Scratch::Room(rows * rank_) + 2 * Scratch::Room(rows * columns_)),
        device, "cross network");
  }

  void Forward(const Step& step) override {
    Scratch kept(kept_.data(), type());
    ConstValues x = input().value();
    for (size_t l = 0; l < crosses_.size(); ++l) {
      const Kept of = Take(kept, step);
      const Values y = l + 1 == crosses_.size() ? output().value() : of.y;
      Compute(step, crosses_[l], {x, of.h, of.z, y}, step.scratch, op::FullyConnected);
      x = y;
    }
  }

  void Infer(const Step& step) override {
    const size_t rows = RowsOf(output(), step);
    Scratch scratch(step.scratch, type());
    float* const library = scratch.TakeFloats(LibraryFloats(rows));
    const Values h = scratch.Take(rows * rank_), z = scratch.Take(rows * columns_);
    const Values between[2] = {scratch.Take(rows * columns_), scratch.Take(rows * columns_)};
    ConstValues x = input().value();
    for (size_t l = 0; l < crosses_.size(); ++l) {
      const Values y = l + 1 == crosses_.size() ? output().value() : between[l % 2];
      Compute(step, crosses_[l], {x, h, z, y}, library, InferProduct);
      x = y;
    }
  }

  // From the last cross to the first, with g the gradient of x(l + 1), which becomes that of x(l):
  // dz = g * x(0), dx(0) += g * z, dbias = column sums of dz, dV = h^T dz, dh = dz V^T,
  // dU = x(l)^T dh, g += dh U^T. All readers of the output have written its gradient by now, so g
  // is in its place.
  void Backward(const Step& step) override {
    const size_t rows = RowsOf(output(), step), n = columns_;
    Parameters& all = step.parameters;
    Scratch scratch(step.scratch, type()), kept(kept_.data(), type());
    float* const library = scratch.TakeFloats(LibraryFloats(rows));
    const Values dh = scratch.Take(rows * rank_), dz = scratch.Take(rows * n);
    const Values dx0 = scratch.Take(rows * n), g = output().grad();
    for (size_t l = crosses_.size(); l-- > 0;) {
      const LowRankCross& cross = crosses_[l];
      const Kept of = KeptAt(l, step);
      const ConstValues factors[2] = {input().value(), of.z};
      op::ProductBackward(factors, 2, 1, g, Write::kOverwrite, dz, rows * n, step.stream);
      op::ProductBackward(factors, 2, 0, g,
                          l + 1 == crosses_.size() ? Write::kOverwrite : Write::kAccumulate, dx0,
                          rows * n, step.stream);
      op::BiasGradient(Values(nullptr), dz, all.grad(cross.bias), rows, n, library, step.stream);
      op::FullyConnectedBackward(of.h, all.rounded(cross.v), dz, Write::kOverwrite, dh,
                                 all.grad(cross.v), rows, rank_, n, library, step.stream);
      const ConstValues x = l == 0 ? ConstValues(input().value()) : KeptAt(l - 1, step).y;
      op::FullyConnectedBackward(x, all.rounded(cross.u), dh, Write::kAccumulate, g,
                                 all.grad(cross.u), rows, n, rank_, library, step.stream);
    }
    if (input().grad() == nullptr) return;
    op::Accumulate(g, dx0, rows * n, step.stream);
    if (input().write == Write::kAccumulate) {
      op::Accumulate(dx0, input().grad(), rows * n, step.stream);
    } else {
      op::Convert(dx0, input().grad(), rows * n, step.stream);
    }
  }

 private:
  // What the forward pass of a cross leaves for the backward pass; y: x(l + 1).
  struct Kept {
    Values h, z, y;
  };
  struct CrossTensors {
    ConstValues x;
    Values h, z, y;
  };

  ElementType type() const { return output().storage->type; }

  size_t LibraryFloats(size_t rows) const {
    return Scratch::Room(std::max({op::FullyConnectedScratchFloats(type(), rows, columns_, rank_),
                                   op::FullyConnectedScratchFloats(type(), rows, rank_, columns_),
                                   op::BiasGradientScratchFloats(rows, columns_)}));
  }

  Kept Take(Scratch& kept, const Step& step) const {
    const size_t rows = RowsOf(output(), step);
    const Values h = kept.Take(rows * rank_), z = kept.Take(rows * columns_);
    return {h, z, kept.Take(rows * columns_)};
  }
  Kept KeptAt(size_t l, const Step& step) {
    const size_t rows = RowsOf(output(), step);
    const size_t each = Scratch::Room(rows * rank_) + 2 * Scratch::Room(rows * columns_);
    Scratch kept(kept_.data() + l * each, type());
    return Take(kept, step);
  }

  static void InferProduct(ConstValues x, ConstValues weight, ConstValues bias, Values y, size_t b,
                           size_t k, size_t n, float* scratch, Stream& stream) {
    op::FullyConnectedInfer(x, weight, bias, /*relu=*/false, y, b, k, n, scratch, stream);
  }

  // multiply: FullyConnected, or what predictions take instead.
  template <typename Multiply>
  void Compute(const Step& step, const LowRankCross& cross, const CrossTensors& of, float* library,
               const Multiply& multiply) const {
    const size_t rows = RowsOf(output(), step);
    Parameters& all = step.parameters;
    multiply(of.x, all.rounded(cross.u), ConstValues(nullptr), of.h, rows, columns_, rank_, library,
             step.stream);
    multiply(of.h, all.rounded(cross.v), all.rounded(cross.bias), of.z, rows, rank_, columns_,
             library, step.stream);
    const ConstValues factors[2] = {input().value(), of.z};
    op::Product(factors, 2, of.y, rows * columns_, step.stream);
    op::Accumulate(of.x, of.y, rows * columns_, step.stream);
  }

  const std::vector<LowRankCross> crosses_;
  const size_t rank_, columns_;
  DeviceFloats kept_;
};

const ObjectGrammar& MultiCrossGrammar() {
  static const ObjectGrammar grammar{
      "mc_param",
      {Count({"num_layers", &MultiCrossConfig::num_layers}, "number of crosses")
           .Required()
           .AtLeast(1)
           .AtMost(1024),
       Count({"projection_dim", &MultiCrossConfig::projection_dim},
             "3.x: the crosses of DCN V2, whose matrix is a product of two of this rank; 0: those "
             "of DCN")
           .Default("0")
           .AtMost(1 << 20),
       Init({"weight_init", &MultiCrossConfig::weight_init}, "initial weights",
            "XavierUniform; with projection_dim XavierNorm"),
       Init({"bias_init", &MultiCrossConfig::bias_init}, "initial biases", "0")}};
  return grammar;
}

LayerOr MakeLowRankCrossLayer(const LayerSite& site) {
  const auto& config = site.own<MultiCrossConfig>();
  const size_t n = site.shape().columns(), rank = config.projection_dim;
  const bool exact = site.exact_init();
  const auto weights = [&](size_t in, size_t out) {
    const WeightInit otherwise =
        MakeWeightInit(InitKind::kXavierNorm, in, out, WeightInit(), exact);
    return MakeWeightInit(config.weight_init, in, out, otherwise, exact);
  };
  std::vector<LowRankCross> crosses;
  for (uint32_t l = 0; l < config.num_layers; ++l) {
    LowRankCross& cross = crosses.emplace_back();
    cross.u = site.parameters().Add(n * rank, weights(n, rank));
    cross.v = site.parameters().Add(rank * n, weights(rank, n));
    cross.bias =
        site.parameters().Add(n, MakeWeightInit(config.bias_init, 0, n, WeightInit(), exact));
  }
  return std::make_unique<LowRankCrossLayer>(site.bottoms()[0], site.Define(site.shape()),
                                             std::move(crosses), rank);
}

LayerOr MakeMultiCrossLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, 1, 1, 1));
  CISTERN_RETURN_IF_ERROR(site.CheckRank(2));
  const auto& config = site.own<MultiCrossConfig>();
  if (config.projection_dim > 0) return MakeLowRankCrossLayer(site);
  const size_t columns = site.shape().columns();
  const bool exact = site.exact_init();
  const WeightInit xavier =
      MakeWeightInit(InitKind::kXavierUniform, columns, columns, WeightInit(), exact);
  Parameter all;
  for (uint32_t layer = 0; layer < config.num_layers; ++layer) {
    const Parameter weight = site.parameters().Add(
        columns, MakeWeightInit(config.weight_init, columns, columns, xavier, exact));
    site.parameters().Add(columns,
                          MakeWeightInit(config.bias_init, 0, columns, WeightInit(), exact));
    if (layer == 0) all = {weight.offset, 2 * columns * config.num_layers};
  }
  return std::make_unique<MultiCrossLayer>(site.bottoms()[0], site.Define(site.shape()), all,
                                           config.num_layers);
}

}  // namespace

LayerGrammar DescribeMultiCross() {
  return DenseLayerOf<MultiCrossConfig>(
      "MultiCross",
      {Object("mc_param", JsonKind::kObject, MultiCrossGrammar(), "depth and initial weights")
           .Required()},
      MakeMultiCrossLayer);
}

}  // namespace cistern::model
