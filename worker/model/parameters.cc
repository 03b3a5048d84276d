#include "worker/model/parameters.h"

#include <cmath>
#include <cstring>

namespace cistern {
namespace {

// Names of a parameter's columns: the weight, then what the rule keeps for it.
std::vector<const char*> ColumnsOf(RuleKind kind) {
  switch (kind) {
    case RuleKind::kSgd:
      return {"w"};
    case RuleKind::kAdam:
      return {"w", "m", "v"};
    case RuleKind::kMomentum:
    case RuleKind::kNesterov:
      return {"w", "velocity"};
    case RuleKind::kFtrl:
      return {"w", "z", "n"};
    default:
      return {"w", "g2sum"};
  }
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

void Parameters::Allocate(const RuleParams& rule, uint64_t seed) {
  rule_ = rule;
  weights_.Grow(count_);
  grads_.Grow(count_);
  states_.Grow(count_ * RuleStateFloats(rule.kind, 1));
  running_.Grow(running_count_);
  next_running_.Grow(running_count_);
  for (const Block& block : blocks_) {
    FillWeights(block.init, seed, block.where.offset, block.where.count, weight(block.where));
  }
  for (const Block& block : running_blocks_) {
    FillWeights(block.init, seed, block.where.offset, block.where.count,
                running_.data() + block.where.offset);
  }
}

void Parameters::StartStep() {
  if (running_count_ == 0) return;
  std::memcpy(next_running_.data(), running_.data(), running_count_ * sizeof(float));
}

std::vector<v1::DenseTableSpec> Parameters::tables() const {
  std::vector<v1::DenseTableSpec> tables;
  if (count_ > 0) tables.push_back(MakeTable("dense", count_, ColumnsOf(rule_.kind)));
  if (running_count_ > 0) tables.push_back(MakeTable("dense_state", running_count_, {"w"}));
  return tables;
}

std::vector<float> Parameters::Read(size_t i) const {
  if (IsRunning(i)) return std::vector<float>(running_.data(), running_.data() + running_count_);
  const size_t columns = 1 + RuleStateFloats(rule_.kind, 1);
  std::vector<float> values(count_ * columns);
  for (size_t row = 0; row < count_; ++row) {
    values[row * columns] = weights_.data()[row];
    for (size_t c = 1; c < columns; ++c) {
      values[row * columns + c] = states_.data()[(c - 1) * count_ + row];
    }
  }
  return values;
}

absl::Status Parameters::Write(size_t i, absl::Span<const float> values) {
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
    std::memcpy(running_.data(), values.data(), values.size() * sizeof(float));
    return absl::OkStatus();
  }
  for (size_t row = 0; row < rows; ++row) {
    weights_.data()[row] = values[row * columns];
    for (size_t c = 1; c < columns; ++c) {
      states_.data()[(c - 1) * count_ + row] = values[row * columns + c];
    }
  }
  return absl::OkStatus();
}

}  // namespace cistern
