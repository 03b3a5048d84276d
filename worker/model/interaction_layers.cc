// Multiply and FmOrder2: features meet features.
#include <algorithm>

#include "cuda/op/fm_order2.h"
#include "cuda/op/multiply.h"
#include "worker/model/layer_site.h"

namespace cistern {
namespace {

class MultiplyLayer : public Layer {
 public:
  MultiplyLayer(Tensor* in, Tensor* out, Parameter weight)
      : Layer({in}, {out}),
        weight_(weight),
        slots_(in->shape.columns()),
        dim_(weight.count / std::max<size_t>(1, slots_)) {}

  bool has_parameters() const override { return true; }
  size_t ScratchFloats(size_t batch) const override {
    return op::MultiplyScratchFloats(output().shape.rows * batch, slots_, dim_);
  }

  void Forward(const Step& step) override {
    op::Multiply(input().value(), step.parameters.weight(weight_), output().value(),
                 RowsOf(output(), step), slots_, dim_, step.stream);
  }

  void Backward(const Step& step) override {
    op::MultiplyBackward(input().value(), step.parameters.weight(weight_), output().grad(),
                         input().write, input().grad(), step.parameters.grad(weight_),
                         RowsOf(output(), step), slots_, dim_, step.scratch, step.stream);
  }

 private:
  const Parameter weight_;
  const size_t slots_, dim_;
};

class FmOrder2Layer : public Layer {
 public:
  FmOrder2Layer(Tensor* in, Tensor* out)
      : Layer({in}, {out}),
        dim_(out->shape.columns()),
        slots_(in->shape.columns() / out->shape.columns()) {}

  void Forward(const Step& step) override {
    op::FmOrder2(input().value(), output().value(), RowsOf(output(), step), slots_, dim_,
                 step.stream);
  }

  void Backward(const Step& step) override {
    op::FmOrder2Backward(input().value(), output().grad(), input().write, input().grad(),
                         RowsOf(output(), step), slots_, dim_, step.stream);
  }

 private:
  const size_t dim_, slots_;
};

}  // namespace

LayerOr MakeMultiplyLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, 1, 1, 1));
  CISTERN_RETURN_IF_ERROR(site.CheckRank(2));
  const LayerConfig& config = site.config();
  const size_t slots = config.weight_dims[0], dim = config.weight_dims[1];
  if (site.shape().columns() != slots) {
    return site.Error(absl::StrCat("weight_dims is [", slots, ", ", dim, "] and bottom '",
                                   site.bottoms()[0]->name, "' is ", site.shape().ToString(),
                                   ": their widths differ"));
  }
  const WeightInit fallback =
      MakeWeightInit(InitKind::kXavierUniform, slots, slots * dim, WeightInit(), site.exact_init());
  const Parameter weight = site.parameters().Add(
      slots * dim,
      MakeWeightInit(config.weight_init, slots, slots * dim, fallback, site.exact_init()));
  return std::make_unique<MultiplyLayer>(site.bottoms()[0],
                                         site.Define({site.shape().rows, {slots * dim}}), weight);
}

LayerOr MakeFmOrder2Layer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, 1, 1, 1));
  CISTERN_RETURN_IF_ERROR(site.CheckRank(2));
  const size_t dim = site.config().out_dim;
  if (site.shape().columns() % dim != 0) {
    return site.Error(absl::StrCat("out_dim is ", dim, " and bottom '", site.bottoms()[0]->name,
                                   "' is ", site.shape().ToString(),
                                   ": out_dim must divide its width"));
  }
  return std::make_unique<FmOrder2Layer>(site.bottoms()[0],
                                         site.Define({site.shape().rows, {dim}}));
}

}  // namespace cistern
