// Reshape, Concat, Slice, Select, Gather and Cast: layers that move values without computing on
// them.
#include <algorithm>

#include "cuda/op/dense/copy_columns.h"
#include "cuda/op/dense/elementwise.h"
#include "cuda/op/dense/fully_connected.h"
#include "worker/model/config/config_readers.h"
#include "worker/model/config/json_document.h"
#include "worker/model/config/layer_grammar.h"
#include "worker/model/layer/layer_configs.h"
#include "worker/model/layer/layer_list.h"
#include "worker/model/layer/layer_site.h"

namespace cistern::model {
namespace {

using namespace grammar;

// A block of columns in a wide matrix and its position in a packed one.
struct ColumnBlock {
  size_t wide = 0;    // first column
  size_t packed = 0;  // first column
  size_t count = 0;
};

// Copies blocks of columns of input 0 to the outputs. A Slice has one block per output. A selection
// has several blocks and one output.
class SelectColumnsLayer : public Layer {
 public:
  // rows, columns: the shape of a sample's input as a matrix; outputs have as many rows. blocks[i]:
  // the blocks of output i.
  SelectColumnsLayer(Tensor* in, size_t rows, size_t columns, std::vector<Tensor*> outs,
                     std::vector<std::vector<ColumnBlock>> blocks)
      : Layer({in}, std::move(outs)), rows_(rows), columns_(columns), blocks_(std::move(blocks)) {}

  void Forward(const Step& step) override {
    for (size_t i = 0; i < outputs().size(); ++i) {
      if (!IsRead(output(i))) continue;
      for (const ColumnBlock& block : blocks_[i]) {
        op::CopyColumns(input().value() + block.wide, columns_, op::Write::kOverwrite,
                        output(i).value() + block.packed, WidthOf(i), rows_ * step.size,
                        block.count, step.stream);
      }
    }
  }

  // Blocks can overlap and can leave columns out, therefore the sum starts from zero.
  void Backward(const Step& step) override {
    const op::Values grad = input().grad();
    const size_t rows = rows_ * step.size;
    if (input().write == op::Write::kOverwrite) op::Fill(0, grad, rows * columns_, step.stream);
    for (size_t i = 0; i < outputs().size(); ++i) {
      if (output(i).grad() == nullptr) continue;  // the output has no reader
      for (const ColumnBlock& block : blocks_[i]) {
        op::CopyColumns(output(i).grad() + block.packed, WidthOf(i), op::Write::kAccumulate,
                        grad + block.wide, columns_, rows, block.count, step.stream);
      }
    }
  }

 private:
  // By a layer, or by the loss, which is none but has a gradient.
  static bool IsRead(const Tensor& out) {
    return out.storage->readers > 0 || !(out.grad() == nullptr);
  }
  size_t WidthOf(size_t i) const { return output(i).shape.size() / rows_; }

  const size_t rows_, columns_;
  const std::vector<std::vector<ColumnBlock>> blocks_;
};

class ConcatLayer : public Layer {
 public:
  // rows: of a sample, of all inputs and of the output as matrices.
  ConcatLayer(std::vector<Tensor*> ins, Tensor* out, size_t rows)
      : Layer(std::move(ins), {out}), rows_(rows), columns_(out->shape.size() / rows) {}

  bool can_write_wide() const override { return rows_ == output().shape.rows; }
  bool joins_columns() const override { return rows_ == 1; }

  void Forward(const Step& step) override {
    size_t first = 0;
    for (const Input& in : inputs()) {
      const size_t width = WidthOf(in);
      if (!IsPart(in)) {
        op::CopyColumns(in.value(), width, op::Write::kOverwrite, output().value() + first,
                        stride(), rows_ * step.size, width, step.stream);
      }
      first += width;
    }
  }

  void Backward(const Step& step) override {
    size_t first = 0;
    for (const Input& in : inputs()) {
      const size_t width = WidthOf(in);
      if (in.grad() != nullptr && !IsPart(in)) {
        op::CopyColumns(output().grad() + first, stride(), in.write, in.grad(), width,
                        rows_ * step.size, width, step.stream);
      }
      first += width;
    }
  }

 private:
  // Whether the layer before has written the input where it belongs, and reads its gradient there.
  bool IsPart(const Input& in) const { return in.tensor->storage->whole == output().storage; }
  size_t stride() const {
    return output().is_wide ? op::WideColumns(output().storage->type, columns_) : columns_;
  }
  size_t WidthOf(const Input& in) const { return in.tensor->shape.size() / rows_; }

  const size_t rows_, columns_;
};

// Positions in a dimension of a bottom that a layer keeps, in this order.
struct Selection {
  const std::vector<uint32_t>& kept;
  std::string key, what;          // of the model file, for messages: "selected", "slot"
  size_t rows, positions, width;  // the bottom of a sample as [rows, positions, width]
};

LayerOr MakeSelection(const LayerSite& site, const Selection& from, const TensorShape& shape) {
  std::vector<ColumnBlock> blocks;
  size_t packed = 0;
  for (const size_t position : from.kept) {
    if (position >= from.positions) {
      return site.Error(absl::StrCat(from.key, " contains ", from.what, " ", position,
                                     ", but bottom '", site.bottoms()[0]->name, "' is ",
                                     site.shape().ToString(), ", with ", from.what, "s 0 to ",
                                     static_cast<int64_t>(from.positions) - 1));
    }
    const size_t wide = position * from.width;
    if (!blocks.empty() && blocks.back().wide + blocks.back().count == wide) {
      blocks.back().count += from.width;  // the next position: one copy for both
    } else {
      blocks.push_back({wide, packed, from.width});
    }
    packed += from.width;
  }
  return std::make_unique<SelectColumnsLayer>(
      site.bottoms()[0], from.rows, from.positions * from.width,
      std::vector<Tensor*>{site.Define(shape)},
      std::vector<std::vector<ColumnBlock>>{std::move(blocks)});
}

// Reshape with "selected": [b, S, V] becomes [b, selected * V].
LayerOr MakeSelectedSlots(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckRank(3));
  const TensorShape& in = site.shape();
  const std::vector<uint32_t>& kept = site.own<ReshapeConfig>().selected;
  return MakeSelection(site, {kept, "selected", "slot", in.rows, in.dims[0], in.dims[1]},
                       {in.rows, {kept.size() * in.dims[1]}});
}

// Select: dimension `dim` of the output has as many positions as `index` lists.
LayerOr MakeSelectLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, 1, 1, 1));
  const TensorShape& in = site.shape();
  const auto& [dim, kept] = site.own<SelectConfig>();
  if (dim >= in.rank()) {
    return site.Error(absl::StrCat("dim is ", dim, " and bottom '", site.bottoms()[0]->name,
                                   "' is ", in.ToString(), ": the last dimension is ",
                                   in.rank() - 1));
  }
  Selection from = {kept, "index", "position", in.rows, in.dims[dim - 1], 1};
  for (size_t i = 0; i + 1 < dim; ++i) from.rows *= in.dims[i];
  for (size_t i = dim; i < in.dims.size(); ++i) from.width *= in.dims[i];
  TensorShape out = in;
  out.dims[dim - 1] = kept.size();
  return MakeSelection(site, from, out);
}

// Gather: rows of each sample. HugeCTR's layer takes rows of the whole batch, so that its output
// has no row per sample.
LayerOr MakeGatherLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, 1, 1, 1));
  CISTERN_RETURN_IF_ERROR(site.CheckRank(2));
  const TensorShape& in = site.shape();
  const std::vector<uint32_t>& kept = site.own<GatherConfig>().indices;
  return MakeSelection(site, {kept, "indices", "row", 1, in.rows, in.columns()},
                       {kept.size(), in.dims});
}

absl::Status ReadReshape(const Json& json, const std::string& path, LayerConfig* layer) {
  const auto& config = layer->own<ReshapeConfig>();
  if (config.time_step > 0 && config.leading_dim == 0) {
    return ConfigError(path + ".leading_dim", "missing; time_step needs it");
  }
  if (!json.contains("selected")) return absl::OkStatus();
  if (config.selected.empty()) return ConfigError(path + ".selected", "lists no slot");
  if (config.leading_dim == 0) return absl::OkStatus();
  return ConfigError(path, "leading_dim and selected exclude each other");
}

absl::Status ReadSelect(const Json&, const std::string& path, LayerConfig* layer) {
  if (!layer->own<SelectConfig>().index.empty()) return absl::OkStatus();
  return ConfigError(path + ".index", "lists no position");
}

absl::Status ReadGather(const Json&, const std::string& path, LayerConfig* layer) {
  if (!layer->own<GatherConfig>().indices.empty()) return absl::OkStatus();
  return ConfigError(path + ".indices", "lists no row");
}

// Reshape with "time_step": any shape becomes [b, time_step, leading_dim].
LayerOr MakeSequence(const LayerSite& site) {
  const TensorShape& in = site.shape();
  const auto& config = site.own<ReshapeConfig>();
  const size_t steps = config.time_step, width = config.leading_dim;
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
  const auto& config = site.own<ReshapeConfig>();
  if (!config.selected.empty()) return MakeSelectedSlots(site);
  if (config.time_step > 0) return MakeSequence(site);
  const TensorShape& in = site.shape();
  const size_t leading = config.leading_dim;
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

// Checks that bottom i has the shape of bottom 0 in all dimensions but `axis`.
absl::Status CheckBesideAxis(const LayerSite& site, size_t i, size_t axis) {
  TensorShape shape = site.shape(i);
  const TensorShape& first = site.shape();
  if (shape.rank() == first.rank()) shape.dims[axis - 1] = first.dims[axis - 1];
  if (shape == first) return absl::OkStatus();
  return site.Error(absl::StrCat(
      "bottoms '", site.bottoms()[0]->name, "' ", first.ToString(), " and '",
      site.bottoms()[i]->name, "' ", site.shape(i).ToString(), " differ in ",
      first.rank() == 2 && shape.rank() == 2 ? "dimension 0"
                                             : absl::StrCat("another dimension than axis ", axis)));
}

LayerOr MakeConcatLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, SIZE_MAX, 1, 1));
  TensorShape out = site.shape();
  const size_t axis = site.own<ConcatConfig>().axis;
  if (axis >= out.rank()) {
    return site.Error(absl::StrCat("axis is ", axis, " and bottom '", site.bottoms()[0]->name,
                                   "' is ", out.ToString(), ": the last axis is ", out.rank() - 1));
  }
  for (size_t i = 1; i < site.bottoms().size(); ++i) {
    CISTERN_RETURN_IF_ERROR(CheckBesideAxis(site, i, axis));
    out.dims[axis - 1] += site.shape(i).dims[axis - 1];
  }
  if (site.bottoms().size() == 1) {
    site.DefineView(out);
    return nullptr;
  }
  size_t rows = out.rows;
  for (size_t i = 0; i + 1 < axis; ++i) rows *= out.dims[i];
  return std::make_unique<ConcatLayer>(site.bottoms(), site.Define(out), rows);
}

LayerOr MakeSliceLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(1, 1, 1, SIZE_MAX));
  const auto& ranges = site.own<SliceConfig>().ranges;
  const size_t columns = site.shape().dims.back();
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
    TensorShape shape = site.shape();
    shape.dims.back() = size_t{hi} - lo;
    if (shape == site.shape()) {  // the whole bottom: HugeCTR's way to let two layers read it
      site.DefineView(shape, i);
      continue;
    }
    outs.push_back(site.Define(shape, i));
    blocks.push_back({{lo, 0, size_t{hi} - lo}});
  }
  if (outs.empty()) return nullptr;
  size_t rows = site.shape().rows;
  for (size_t i = 0; i + 1 < site.shape().dims.size(); ++i) rows *= site.shape().dims[i];
  return std::make_unique<SelectColumnsLayer>(site.bottoms()[0], rows, columns, std::move(outs),
                                              std::move(blocks));
}

}  // namespace

LayerGrammar DescribeReshape() {
  return DenseLayerOf<ReshapeConfig>(
      {"Reshape", LayerOutput::kVectors},
      {Count({"leading_dim", &ReshapeConfig::leading_dim},
             "columns of the output; excludes selected")
           .AtLeast(1)
           .Otherwise("elements per sample"),
       Count({"time_step", &ReshapeConfig::time_step},
             "3.x: rows of a sample in an output of three dimensions, [b, time_step, "
             "leading_dim]")
           .AtLeast(1)
           .Otherwise("the output has two dimensions"),
       MakeKey({"selected", &ReshapeConfig::selected}, JsonKind::kCounts,
               "slots to gather from an embedding")
           .Otherwise("all of them")},
      MakeReshapeLayer, ReadReshape);
}

LayerGrammar DescribeConcat() {
  return DenseLayerOf<ConcatConfig>(
      {"Concat", LayerOutput::kVectors},
      {Count({"axis", &ConcatConfig::axis},
             "the dimension along which bottoms are joined; they agree in "
             "the others")
           .Default("1")
           .AtLeast(1)
           .AtMost(3)},
      MakeConcatLayer);
}

LayerGrammar DescribeSlice() {
  return DenseLayerOf<SliceConfig>("Slice",
                                   {MakeKey({"ranges", &SliceConfig::ranges}, JsonKind::kRanges,
                                            "positions [lo, hi) of each output in the last "
                                            "dimension")
                                        .Required()},
                                   MakeSliceLayer);
}

LayerGrammar DescribeSelect() {
  return DenseLayerOf<SelectConfig>(
      "Select",
      {Count({"dim", &SelectConfig::dim}, "the dimension of which positions are kept")
           .Required()
           .AtLeast(1)
           .AtMost(3),
       MakeKey({"index", &SelectConfig::index}, JsonKind::kCounts,
               "the positions, in the order of the output")
           .Required()},
      MakeSelectLayer, ReadSelect);
}

LayerGrammar DescribeGather() {
  return DenseLayerOf<GatherConfig>("Gather",
                                    {MakeKey({"indices", &GatherConfig::indices}, JsonKind::kCounts,
                                             "rows of a sample, in the order of the output")
                                         .Required()},
                                    MakeGatherLayer, ReadGather);
}

LayerGrammar DescribeCast() {
  return DenseLayer({"Cast", LayerOutput::kShape}, MakeCastLayer, nullptr,
                    "Cast has no effect: all activations of a model have the same precision");
}

}  // namespace cistern::model
