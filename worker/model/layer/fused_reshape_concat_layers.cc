// FusedReshapeConcat and FusedReshapeConcatGeneral (HugeCTR 3.x): the vectors of several embeddings
// side by side, one row per slot. DIN reads its history and its target this way.
#include "cuda/op/dense/copy_columns.h"
#include "cuda/op/dense/elementwise.h"
#include "worker/model/config/layer_grammar.h"
#include "worker/model/layer/layer_list.h"
#include "worker/model/layer/layer_site.h"

namespace cistern::model {
namespace {

// A block of columns that is copied in each of rows * batch rows.
struct CopiedBlock {
  size_t input, from, from_stride;  // elements
  size_t output, to, to_stride;
  size_t rows, columns;
};

class FusedReshapeConcatLayer : public Layer {
 public:
  // blocks: each element of the inputs and of the outputs is in one of them.
  FusedReshapeConcatLayer(std::vector<Tensor*> ins, std::vector<Tensor*> outs,
                          std::vector<CopiedBlock> blocks)
      : Layer(std::move(ins), std::move(outs)), blocks_(std::move(blocks)) {}

  void Forward(const Step& step) override {
    for (const CopiedBlock& one : blocks_) {
      op::CopyColumns(input(one.input).value() + one.from, one.from_stride, op::Write::kOverwrite,
                      output(one.output).value() + one.to, one.to_stride, one.rows * step.size,
                      one.columns, step.stream);
    }
  }

  void Backward(const Step& step) override {
    for (const Input& in : inputs()) {
      if (in.grad() == nullptr || in.write == op::Write::kAccumulate || AllOutputsAreRead())
        continue;
      op::Fill(0, in.grad(), in.tensor->shape.size() * step.size, step.stream);
    }
    for (const CopiedBlock& one : blocks_) {
      const Input& in = input(one.input);
      if (in.grad() == nullptr || output(one.output).grad() == nullptr) continue;
      op::CopyColumns(output(one.output).grad() + one.to, one.to_stride, in.write,
                      in.grad() + one.from, one.from_stride, one.rows * step.size, one.columns,
                      step.stream);
    }
  }

 private:
  bool AllOutputsAreRead() const {
    for (const Tensor* out : outputs()) {
      if (out->grad() == nullptr) return false;
    }
    return true;
  }

  const std::vector<CopiedBlock> blocks_;
};

// Checks that the bottoms are [b, slots, any] with the same b and slots. Returns the sum of their
// last dimensions.
absl::StatusOr<size_t> WidthOfVectors(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckRank(3));
  const size_t slots = site.shape().dims[0];
  size_t width = 0;
  for (size_t i = 0; i < site.bottoms().size(); ++i) {
    CISTERN_RETURN_IF_ERROR(site.CheckRank(3, i));
    if (site.shape(i).rows != site.shape().rows || site.shape(i).dims[0] != slots) {
      return site.Error(absl::StrCat(
          "bottoms '", site.bottoms()[0]->name, "' ", site.shape().ToString(), " and '",
          site.bottoms()[i]->name, "' ", site.shape(i).ToString(), " differ in dimension 0 or 1"));
    }
    width += site.shape(i).dims[1];
  }
  return width;
}

LayerOr MakeGeneral(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, SIZE_MAX, 1, 1));
  CISTERN_ASSIGN_OR_RETURN(const size_t width, WidthOfVectors(site));
  const size_t rows = site.shape().rows * site.shape().dims[0];
  std::vector<CopiedBlock> blocks;
  size_t to = 0;
  for (size_t i = 0; i < site.bottoms().size(); ++i) {
    const size_t columns = site.shape(i).dims[1];
    blocks.push_back({i, 0, columns, 0, to, width, rows, columns});
    to += columns;
  }
  return std::make_unique<FusedReshapeConcatLayer>(
      site.bottoms(), std::vector<Tensor*>{site.Define({rows, {width}})}, std::move(blocks));
}

// Top 0 has the rows of all slots but the last, top 1 those of the last.
LayerOr MakeFusedReshapeConcat(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, SIZE_MAX, 2, 2));
  CISTERN_ASSIGN_OR_RETURN(const size_t width, WidthOfVectors(site));
  const size_t rows = site.shape().rows, slots = site.shape().dims[0];
  if (slots < 2) {
    return site.Error(absl::StrCat("bottom '", site.bottoms()[0]->name, "' is ",
                                   site.shape().ToString(),
                                   "; it must have 2 or more slots: the last one is the item"));
  }
  std::vector<CopiedBlock> blocks;
  size_t to = 0;
  for (size_t i = 0; i < site.bottoms().size(); ++i) {
    const size_t columns = site.shape(i).dims[1];
    for (size_t slot = 0; slot + 1 < slots; ++slot) {
      blocks.push_back({i, slot * columns, slots * columns, 0, slot * width + to,
                        (slots - 1) * width, rows, columns});
    }
    blocks.push_back({i, (slots - 1) * columns, slots * columns, 1, to, width, rows, columns});
    to += columns;
  }
  Tensor* const history = site.Define({rows * (slots - 1), {width}}, 0);
  Tensor* const item = site.Define({rows, {width}}, 1);
  return std::make_unique<FusedReshapeConcatLayer>(
      site.bottoms(), std::vector<Tensor*>{history, item}, std::move(blocks));
}

}  // namespace

LayerGrammar DescribeFusedReshapeConcat() {
  return DenseLayer("FusedReshapeConcat", MakeFusedReshapeConcat);
}

LayerGrammar DescribeFusedReshapeConcatGeneral() {
  return DenseLayer("FusedReshapeConcatGeneral", MakeGeneral);
}

}  // namespace cistern::model
