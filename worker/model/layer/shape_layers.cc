// Reshape, Concat, Slice and Cast: layers that move values without computing on them.
#include <algorithm>

#include "cuda/op/dense/copy_columns.h"
#include "cuda/op/dense/elementwise.h"
#include "worker/model/config/config_readers.h"
#include "worker/model/config/json_document.h"
#include "worker/model/layer/layer_list.h"
#include "worker/model/layer/layer_site.h"

namespace cistern {
namespace {

using namespace grammar;

// A block of columns in a wide matrix and its position in a packed one.
struct ColumnBlock {
  size_t wide = 0;    // first column
  size_t packed = 0;  // first column
  size_t count = 0;
};

// Copies blocks of columns of input 0 to the outputs. A Slice has one block per output. A gather (a
// Reshape with `selected`) has several blocks and one output.
class SelectColumnsLayer : public Layer {
 public:
  // blocks[i]: the blocks of output i.
  SelectColumnsLayer(Tensor* in, size_t columns, std::vector<Tensor*> outs,
                     std::vector<std::vector<ColumnBlock>> blocks)
      : Layer({in}, std::move(outs)), columns_(columns), blocks_(std::move(blocks)) {}

  void Forward(const Step& step) override {
    for (size_t i = 0; i < outputs().size(); ++i) {
      const size_t width = output(i).shape.columns();
      for (const ColumnBlock& block : blocks_[i]) {
        op::CopyColumns(input().value() + block.wide, columns_, op::Write::kOverwrite,
                        output(i).value() + block.packed, width, RowsOf(output(i), step),
                        block.count, step.stream);
      }
    }
  }

  // Blocks can overlap and can leave columns out, therefore the sum starts from zero.
  void Backward(const Step& step) override {
    const op::Values grad = input().grad();
    const size_t rows = RowsOf(output(), step);
    if (input().write == op::Write::kOverwrite) op::Fill(0, grad, rows * columns_, step.stream);
    for (size_t i = 0; i < outputs().size(); ++i) {
      if (output(i).grad() == nullptr) continue;  // the output has no reader
      const size_t width = output(i).shape.columns();
      for (const ColumnBlock& block : blocks_[i]) {
        op::CopyColumns(output(i).grad() + block.packed, width, op::Write::kAccumulate,
                        grad + block.wide, columns_, rows, block.count, step.stream);
      }
    }
  }

 private:
  const size_t columns_;  // columns of the input as a matrix with as many rows as the outputs
  const std::vector<std::vector<ColumnBlock>> blocks_;
};

class ConcatLayer : public Layer {
 public:
  ConcatLayer(std::vector<Tensor*> ins, Tensor* out)
      : Layer(std::move(ins), {out}), columns_(out->shape.columns()) {}

  void Forward(const Step& step) override {
    size_t first = 0;
    for (const Input& in : inputs()) {
      const size_t width = in.tensor->shape.columns();
      op::CopyColumns(in.value(), width, op::Write::kOverwrite, output().value() + first, columns_,
                      RowsOf(output(), step), width, step.stream);
      first += width;
    }
  }

  void Backward(const Step& step) override {
    size_t first = 0;
    for (const Input& in : inputs()) {
      const size_t width = in.tensor->shape.columns();
      if (in.grad() != nullptr) {
        op::CopyColumns(output().grad() + first, columns_, in.write, in.grad(), width,
                        RowsOf(output(), step), width, step.stream);
      }
      first += width;
    }
  }

 private:
  const size_t columns_;
};

// Reshape with "selected": [b, S, V] becomes [b, selected * V].
LayerOr MakeGather(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckRank(3));
  const TensorShape& in = site.shape();
  const size_t slots = in.dims[0], width = in.dims[1];
  std::vector<ColumnBlock> blocks;
  for (size_t slot : site.config().selected) {
    if (slot >= slots) {
      return site.Error(absl::StrCat("selected contains slot ", slot, ", but bottom '",
                                     site.bottoms()[0]->name, "' is ", in.ToString(),
                                     ", with slots 0 to ", slots - 1));
    }
    blocks.push_back({slot * width, blocks.size() * width, width});
  }
  Tensor* out = site.Define({in.rows, {blocks.size() * width}});
  return std::make_unique<SelectColumnsLayer>(
      site.bottoms()[0], slots * width, std::vector<Tensor*>{out},
      std::vector<std::vector<ColumnBlock>>{std::move(blocks)});
}

absl::Status ReadReshape(const Json& json, const std::string& path, LayerConfig* layer) {
  layer->leading_dim = json.value("leading_dim", 0u);
  layer->time_step = json.value("time_step", 0u);
  if (layer->time_step > 0 && layer->leading_dim == 0) {
    return ConfigError(path + ".leading_dim", "missing; time_step needs it");
  }
  if (!json.contains("selected")) return absl::OkStatus();
  layer->selected = json.at("selected").get<std::vector<uint32_t>>();
  if (layer->selected.empty()) return ConfigError(path + ".selected", "lists no slot");
  if (layer->leading_dim == 0) return absl::OkStatus();
  return ConfigError(path, "leading_dim and selected exclude each other");
}

absl::Status ReadSlice(const Json& json, const std::string&, LayerConfig* layer) {
  layer->ranges = json.at("ranges").get<std::vector<std::pair<uint32_t, uint32_t>>>();
  return absl::OkStatus();
}

// Reshape with "time_step": any shape becomes [b, time_step, leading_dim].
LayerOr MakeSequence(const LayerSite& site) {
  const TensorShape& in = site.shape();
  const size_t steps = site.config().time_step, width = site.config().leading_dim;
  if (in.size() % (steps * width) != 0) {
    return site.Error(absl::StrCat("time_step is ", steps, ", leading_dim is ", width,
                                   " and bottom '", site.bottoms()[0]->name, "' is ", in.ToString(),
                                   ": their product must divide the ", in.size(),
                                   " elements of a sample"));
  }
  site.DefineView({in.size() / (steps * width), {steps, width}});
  return nullptr;
}

LayerOr MakeReshapeLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, 1, 1, 1));
  if (!site.config().selected.empty()) return MakeGather(site);
  if (site.config().time_step > 0) return MakeSequence(site);
  const TensorShape& in = site.shape();
  const size_t leading = site.config().leading_dim;
  if (leading == 0) {
    site.DefineView({in.rows, {in.columns()}});
    return nullptr;
  }
  const size_t last = in.dims.back();
  const std::string context = absl::StrCat("leading_dim is ", leading, " and bottom '",
                                           site.bottoms()[0]->name, "' is ", in.ToString(), ": ");
  if (last == 0 || leading < last || leading % last != 0) {
    return site.Error(context + "it must be a multiple of the last dimension");
  }
  if (in.size() % leading != 0) {
    return site.Error(
        absl::StrCat(context, "it must divide the ", in.size(), " elements of a sample"));
  }
  site.DefineView({in.size() / leading, {leading}});
  return nullptr;
}

// HugeCTR's conversion to half precision. Here all tensors have the same type, and the output of
// Cast is a view.
LayerOr MakeCastLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, 1, 1, 1));
  site.DefineView(site.shape());
  return nullptr;
}

LayerOr MakeConcatLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, SIZE_MAX, 1, 1));
  TensorShape out = {site.shape().rows, {0}};
  for (size_t i = 0; i < site.bottoms().size(); ++i) {
    CISTERN_RETURN_IF_ERROR(site.CheckRank(2, i));
    if (site.shape(i).rows != out.rows) {
      return site.Error(absl::StrCat("bottoms '", site.bottoms()[0]->name, "' ",
                                     site.shape().ToString(), " and '", site.bottoms()[i]->name,
                                     "' ", site.shape(i).ToString(), " differ in dimension 0"));
    }
    out.dims[0] += site.shape(i).columns();
  }
  if (site.bottoms().size() == 1) {
    site.DefineView(out);
    return nullptr;
  }
  return std::make_unique<ConcatLayer>(site.bottoms(), site.Define(out));
}

LayerOr MakeSliceLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, 1, 1, SIZE_MAX));
  CISTERN_RETURN_IF_ERROR(site.CheckRank(2));
  const auto& ranges = site.config().ranges;
  const size_t columns = site.shape().columns();
  if (ranges.size() != site.config().tops.size()) {
    return site.Error(
        absl::StrCat("has ", ranges.size(), " ranges but ", site.config().tops.size(), " tops"));
  }
  std::vector<Tensor*> outs;
  std::vector<std::vector<ColumnBlock>> blocks;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const auto [lo, hi] = ranges[i];
    if (hi > columns) {
      return site.Error(absl::StrCat("range [", lo, ", ", hi, ") exceeds bottom '",
                                     site.bottoms()[0]->name, "', which is ",
                                     site.shape().ToString()));
    }
    const TensorShape shape = {site.shape().rows, {size_t{hi} - lo}};
    if (shape == site.shape()) {  // the whole bottom: HugeCTR's way to let two layers read it
      site.DefineView(shape, i);
      continue;
    }
    outs.push_back(site.Define(shape, i));
    blocks.push_back({{lo, 0, size_t{hi} - lo}});
  }
  if (outs.empty()) return nullptr;
  return std::make_unique<SelectColumnsLayer>(site.bottoms()[0], columns, std::move(outs),
                                              std::move(blocks));
}

}  // namespace

LayerGrammar DescribeReshape() {
  return DenseLayer("Reshape",
                    {Count("leading_dim", "columns of the output; excludes selected")
                         .AtLeast(1)
                         .Otherwise("elements per sample"),
                     Count("time_step",
                           "3.x: rows of a sample in an output of three dimensions, [b, time_step, "
                           "leading_dim]")
                         .AtLeast(1)
                         .Otherwise("the output has two dimensions"),
                     MakeKey("selected", JsonKind::kCounts, "slots to gather from an embedding")
                         .Otherwise("all of them")},
                    ReadReshape, MakeReshapeLayer);
}

LayerGrammar DescribeConcat() {
  return DenseLayer("Concat", {}, nullptr, MakeConcatLayer);
}

LayerGrammar DescribeSlice() {
  return DenseLayer(
      "Slice", {MakeKey("ranges", JsonKind::kRanges, "columns [lo, hi) of each output").Required()},
      ReadSlice, MakeSliceLayer);
}

LayerGrammar DescribeCast() {
  return DenseLayer("Cast", {}, nullptr, MakeCastLayer,
                    "Cast has no effect: all activations of a model have the same precision");
}

}  // namespace cistern
