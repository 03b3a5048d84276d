#include "worker/model/layer/parameters.h"

#include <cmath>

#include "cuda/op/dense/copy_columns.h"
#include "cuda/op/dense/elementwise.h"

namespace cistern::model {
namespace {

// The column names of the dense table: the weight, then the rule's state.
std::vector<const char*> ColumnsOf(RuleKind kind) {
  std::vector<const char*> columns = {"w"};
  for (const char* column : InfoOf(kind).columns) columns.push_back(column);
  return columns;
}

v1::DenseTableSpec MakeTable(const char* name, size_t rows,
                             const std::vector<const char*>& columns) {
  v1::DenseTableSpec table;
  table.set_name(name);
  table.set_rows(rows);
  for (const char* column : columns) table.add_columns(column);
  return table;
}

}  // namespace

Parameter Parameters::Add(size_t count, const WeightInit& init) {
  blocks_.push_back({{count_, count}, init});
  count_ += count;
  return blocks_.back().where;
}

Parameter Parameters::AddRunning(size_t count, float first) {
  running_blocks_.push_back({{running_count_, count}, {WeightInit::Kind::kConstant, first}});
  running_count_ += count;
  return running_blocks_.back().where;
}

absl::Status Parameters::Allocate(const RuleParams& rule, std::optional<uint64_t> seed,
                                  ElementType activations, DeviceContext& device) {
  rule_ = rule;
  activations_ = activations;
  CISTERN_RETURN_IF_ERROR(weights_.Grow(count_, device, "parameters"));
  CISTERN_RETURN_IF_ERROR(grads_.Grow(count_, device, "parameters"));
  CISTERN_RETURN_IF_ERROR(
      states_.Grow(count_ * RuleStateFloats(rule.kind, 1), device, "parameters"));
  CISTERN_RETURN_IF_ERROR(running_.Grow(running_count_, device, "parameters"));
  CISTERN_RETURN_IF_ERROR(next_running_.Grow(running_count_, device, "parameters"));
  if (activations_ != ElementType::kFloat) {
    CISTERN_RETURN_IF_ERROR(rounded_.Grow(count_, device, "parameters"));
  }
  return FillFirst(seed, device.stream());
}

absl::Status Parameters::FillFirst(std::optional<uint64_t> seed, Stream& stream) {
  const auto fill = [](uint64_t key, const std::vector<Block>& blocks, size_t count) {
    std::vector<float> first(count);
    for (const Block& block : blocks) {
      FillWeights(block.init, key, block.where.offset, block.where.count,
                  first.data() + block.where.offset);
    }
    return first;
  };
  const std::vector<float> weights =
      seed ? fill(*seed, blocks_, count_) : std::vector<float>(count_);
  const std::vector<float> running = fill(0, running_blocks_, running_count_);  // constants
  CopyToDevice(weights.data(), weights_.data(), count_ * sizeof(float), stream);
  CopyToDevice(running.data(), running_.data(), running_count_ * sizeof(float), stream);
  Round(stream);
  return stream.Wait();
}

op::ConstValues Parameters::rounded(Parameter p) const {
  if (activations_ == ElementType::kFloat) return weights_.data() + p.offset;
  return {rounded_.data() + p.offset, activations_};
}

void Parameters::Round(Stream& stream) {
  if (activations_ == ElementType::kFloat) return;
  op::Convert(weights_.data(), op::Values(rounded_.data(), activations_), count_, stream);
}

void Parameters::StartStep(Stream& stream) {
  CopyOnDevice(running_.data(), next_running_.data(), running_count_ * sizeof(float), stream);
}

void Parameters::Advance(const op::GradientScaler* scaler, Stream& stream) {
  op::CopyIfUpdatesAllowed(scaler, next_running_.data(), running_.data(), running_count_, stream);
}

std::vector<v1::DenseTableSpec> Parameters::tables() const {
  std::vector<v1::DenseTableSpec> tables;
  if (count_ > 0) tables.push_back(MakeTable("dense", count_, ColumnsOf(rule_.kind)));
  if (running_count_ > 0) tables.push_back(MakeTable("dense_state", running_count_, {"w"}));
  return tables;
}

std::optional<Parameter> Parameters::LogitBias() const {
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
    const bool named = block->init.kind == WeightInit::Kind::kNamed;
    if (named && block->where.count == 1) return block->where;
  }
  return std::nullopt;
}

size_t Parameters::ValuesOf(size_t i) const {
  return IsRunning(i) ? running_count_ : count_ * (1 + RuleStateFloats(rule_.kind, 1));
}

void Parameters::CopyTable(size_t i, float* to, Stream& stream) const {
  if (IsRunning(i)) {
    return CopyOnDevice(running_.data(), to, running_count_ * sizeof(float), stream);
  }
  const size_t columns = 1 + RuleStateFloats(rule_.kind, 1);
  for (size_t c = 0; c < columns; ++c) {
    const float* const from = c == 0 ? weights_.data() : states_.data() + (c - 1) * count_;
    op::CopyColumns(from, 1, op::Write::kOverwrite, to + c, columns, count_, 1, stream);
  }
}

absl::StatusOr<std::vector<float>> Parameters::Read(size_t i, DeviceContext& device) const {
  const size_t bytes = ValuesOf(i) * sizeof(float);
  CISTERN_ASSIGN_OR_RETURN(
      Memory table, device.pool().Take(MemoryPlace::kDevice, bytes, "dense", MemoryFill::kAny));
  CopyTable(i, static_cast<float*>(table.data()), device.stream());
  std::vector<float> values(ValuesOf(i));
  CopyToHost(table.data(), values.data(), bytes, device.stream());
  CISTERN_RETURN_IF_ERROR(device.stream().Wait());
  return values;
}

absl::Status Parameters::Write(size_t i, absl::Span<const float> values, Stream& stream) {
  const size_t columns = IsRunning(i) ? 1 : 1 + RuleStateFloats(rule_.kind, 1);
  const size_t rows = IsRunning(i) ? running_count_ : count_;
  if (values.size() != rows * columns) {
    return absl::InvalidArgumentError(absl::StrCat("dense table ", i, " has ", rows, " rows of ",
                                                   columns, " columns; got ", values.size(),
                                                   " values"));
  }
  for (size_t k = 0; k < values.size(); ++k) {
    if (std::isfinite(values[k])) continue;
    return absl::InvalidArgumentError(absl::StrCat("dense table ", i, ", row ", k / columns,
                                                   ", column ", k % columns,
                                                   ": not a finite number"));
  }
  if (IsRunning(i)) {
    CopyToDevice(values.data(), running_.data(), values.size() * sizeof(float), stream);
    return stream.Wait();
  }
  std::vector<float> weights(rows), states(rows * (columns - 1));
  for (size_t row = 0; row < rows; ++row) {
    weights[row] = values[row * columns];
    for (size_t c = 1; c < columns; ++c) {
      states[(c - 1) * rows + row] = values[row * columns + c];
    }
  }
  CopyToDevice(weights.data(), weights_.data(), weights.size() * sizeof(float), stream);
  CopyToDevice(states.data(), states_.data(), states.size() * sizeof(float), stream);
  Round(stream);
  return stream.Wait();
}

}  // namespace cistern::model
