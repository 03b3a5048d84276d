// ReduceSum and ReduceMean over one dimension; elementwise Add, Sub and DotProduct of several
// tensors.
#include <algorithm>

#include "cuda/op/dense/copy_columns.h"
#include "cuda/op/dense/elementwise.h"
#include "cuda/op/dense/product.h"
#include "cuda/op/dense/reduce_sum.h"
#include "worker/model/config/layer_grammar.h"
#include "worker/model/layer/layer_configs.h"
#include "worker/model/layer/layer_list.h"
#include "worker/model/layer/layer_site.h"

namespace cistern::model {
namespace {

using namespace grammar;

// ReduceSum, and with a factor of 1 / count ReduceMean.
class ReduceLayer : public Layer {
 public:
  // Treats the tensor as [outer * batch, count, inner].
  ReduceLayer(Tensor* in, Tensor* out, float factor, size_t outer, size_t count, size_t inner)
      : Layer({in}, {out}), factor_(factor), outer_(outer), count_(count), inner_(inner) {}

  void Forward(const Step& step) override {
    op::ScaledSum(factor_, input().value(), op::Write::kOverwrite, output().value(),
                  outer_ * step.size, count_, inner_, step.stream);
  }

  void Backward(const Step& step) override {
    op::ScaledRepeat(factor_, output().grad(), input().write, input().grad(), outer_ * step.size,
                     count_, inner_, step.stream);
  }

 private:
  const float factor_;
  const size_t outer_, count_, inner_;
};

class AddLayer : public Layer {
 public:
  AddLayer(std::vector<Tensor*> ins, Tensor* out) : Layer(std::move(ins), {out}) {}

  void Forward(const Step& step) override {
    const size_t count = step.size * output().shape.size();
    op::Add(input(0).value(), input(1).value(), output().value(), count, step.stream);
    for (size_t i = 2; i < inputs().size(); ++i) {
      op::Accumulate(input(i).value(), output().value(), count, step.stream);
    }
  }

  void Backward(const Step& step) override {
    const size_t columns = output().shape.size();
    for (const Input& in : inputs()) {
      if (in.grad() == nullptr) continue;
      op::CopyColumns(output().grad(), columns, in.write, in.grad(), columns, step.size, columns,
                      step.stream);
    }
  }
};

// y = input 0 - input 1.
class SubLayer : public Layer {
 public:
  SubLayer(std::vector<Tensor*> ins, Tensor* out)
      : Layer(std::move(ins), {out}), columns_(out->shape.size()) {}

  void Forward(const Step& step) override {
    Add(1, input(0).value(), op::Write::kOverwrite, output().value(), step);
    Add(-1, input(1).value(), op::Write::kAccumulate, output().value(), step);
  }

  void Backward(const Step& step) override {
    for (size_t i = 0; i < 2; ++i) {
      if (input(i).grad() == nullptr) continue;
      Add(i == 0 ? 1 : -1, output().grad(), input(i).write, input(i).grad(), step);
    }
  }

 private:
  void Add(float sign, op::ConstValues x, op::Write write, op::Values y, const Step& step) const {
    op::ScaledRepeat(sign, x, write, y, step.size, 1, columns_, step.stream);
  }

  const size_t columns_;
};

// HugeCTR 2.3's DotProduct, which multiplies elementwise and is ElementwiseMultiply in 3.x.
class ProductLayer : public Layer {
 public:
  ProductLayer(std::vector<Tensor*> ins, Tensor* out) : Layer(std::move(ins), {out}) {
    factors_.assign(inputs().size(), op::ConstValues(nullptr));
  }

  void Forward(const Step& step) override {
    op::Product(Factors(), factors_.size(), output().value(), step.size * output().shape.size(),
                step.stream);
  }

  void Backward(const Step& step) override {
    for (size_t i = 0; i < factors_.size(); ++i) {
      if (input(i).grad() == nullptr) continue;
      op::ProductBackward(Factors(), factors_.size(), i, output().grad(), input(i).write,
                          input(i).grad(), step.size * output().shape.size(), step.stream);
    }
  }

 private:
  // The addresses of the inputs in this step.
  const op::ConstValues* Factors() {
    for (size_t i = 0; i < factors_.size(); ++i) factors_[i] = input(i).value();
    return factors_.data();
  }

  std::vector<op::ConstValues> factors_;
};

LayerOr MakeReduceLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, 1, 1, 1));
  const TensorShape& in = site.shape();
  const size_t axis = site.own<ReduceConfig>().axis;
  if (axis == 0 || axis >= in.rank()) {
    return site.Error(absl::StrCat(
        "axis is ", axis, " and bottom '", site.bottoms()[0]->name, "' is ", in.ToString(),
        axis == 0 ? absl::StrCat(": a ", site.config().type == "ReduceMean" ? "mean" : "sum",
                                 " over the samples of a batch leaves no logit "
                                 "per sample; use axis 1 or higher")
                  : absl::StrCat(": the last axis is ", in.rank() - 1)));
  }
  TensorShape out = in;
  out.dims[axis - 1] = 1;
  size_t outer = in.rows, inner = 1;
  for (size_t i = 0; i < in.dims.size(); ++i) {
    if (i < axis - 1) outer *= in.dims[i];
    if (i > axis - 1) inner *= in.dims[i];
  }
  const size_t count = in.dims[axis - 1];
  const float factor = site.config().type == "ReduceMean"
                           ? 1.0f / static_cast<float>(std::max<size_t>(1, count))
                           : 1.0f;
  return std::make_unique<ReduceLayer>(site.bottoms()[0], site.Define(out), factor, outer, count,
                                       inner);
}

LayerOr MakeAddLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(2, SIZE_MAX, 1, 1));
  CISTERN_RETURN_IF_ERROR(site.CheckSameShapes());
  return std::make_unique<AddLayer>(site.bottoms(), site.Define(site.shape()));
}

LayerOr MakeSubLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(2, 2, 1, 1));
  CISTERN_RETURN_IF_ERROR(site.CheckSameShapes());
  return std::make_unique<SubLayer>(site.bottoms(), site.Define(site.shape()));
}

LayerOr MakeProductLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(2, SIZE_MAX, 1, 1));
  CISTERN_RETURN_IF_ERROR(site.CheckSameShapes());
  return std::make_unique<ProductLayer>(site.bottoms(), site.Define(site.shape()));
}

}  // namespace

LayerGrammar DescribeReduceSum() {
  return DenseLayerOf<ReduceConfig>(
      "ReduceSum",
      {Count({"axis", &ReduceConfig::axis}, "the dimension that is summed; its size becomes 1")
           .Required()
           .AtMost(2)},
      MakeReduceLayer);
}

LayerGrammar DescribeReduceMean() {
  return DenseLayerOf<ReduceConfig>(
      "ReduceMean",
      {Count({"axis", &ReduceConfig::axis}, "the dimension that is averaged; its size becomes 1")
           .Required()
           .AtMost(2)},
      MakeReduceLayer);
}

LayerGrammar DescribeAdd() {
  return DenseLayer({"Add", LayerOutput::kVectors}, MakeAddLayer);
}

LayerGrammar DescribeSub() {
  return DenseLayer({"Sub", LayerOutput::kVectors}, MakeSubLayer);
}

LayerGrammar DescribeElementwiseMultiply() {
  return DenseLayer({"ElementwiseMultiply", LayerOutput::kVectors}, MakeProductLayer);
}

LayerGrammar DescribeDotProduct() {
  return DenseLayer({"DotProduct", LayerOutput::kVectors}, MakeProductLayer);
}

}  // namespace cistern::model
