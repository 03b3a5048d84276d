#include "python/rows/live_rows.h"

#include <algorithm>
#include <cmath>

#include "common/value/bfloat16_cells.h"
#include "common/value/update_rule.h"

namespace cistern {

absl::StatusOr<LiveRows> LiveRows::Create(ParameterClient& client, TableId table) {
  const v1::TableSpec& spec = client.schema().tables(static_cast<int>(table));
  const ValueLayout& layout = client.layout(table);
  if (layout.accessor().has_statistics()) {
    return absl::InvalidArgumentError(
        absl::StrCat("table '", spec.name(), "' has the ", layout.accessor().name(),
                     " accessor, whose rows need shows and clicks: only the "
                     "trainer of JSON models updates them"));
  }
  if (layout.count_field() != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("table '", spec.name(),
                     "' counts how often its rows occur (admit_after, or evict_by count): only the "
                     "trainer of JSON models does"));
  }
  if (layout.rule().update_type != UpdateType::kLocal) {
    return absl::InvalidArgumentError(
        absl::StrCat("table '", spec.name(),
                     "' updates all rows in every step (update_type Global): only the "
                     "trainer of JSON models does"));
  }
  return LiveRows(client, table);
}

LiveRows::LiveRows(ParameterClient& client, TableId table)
    : client_(&client),
      table_(table),
      layout_(&client.layout(table)),
      floats_(layout_->full_floats()),
      gradients_(layout_->dim()) {}

absl::Status LiveRows::LookUp(absl::Span<const Key> keys, LiveBatch* batch) {
  const size_t before = index_.size();
  batch->places.resize(keys.size());
  index_.Add(keys, batch->places.data());  // rows, until they become places below
  const absl::Status pulled = PullNew(before);
  if (!pulled.ok()) {
    index_.Truncate(before);
    return pulled;
  }
  batch->pulled = index_.size() - before;
  if (++batch_ == 0) {  // wrapped around: no older mark may look like a new one
    std::fill(batch_of_.begin(), batch_of_.end(), 0);
    batch_ = 1;
  }
  batch->rows.clear();
  for (uint32_t& place : batch->places) {
    const Row row = place;
    if (batch_of_[row] != batch_) {
      batch_of_[row] = batch_;
      place_of_[row] = static_cast<uint32_t>(batch->rows.size());
      batch->rows.push_back(row);
    }
    place = place_of_[row];
  }
  return absl::OkStatus();
}

absl::Status LiveRows::PullNew(size_t first) {
  const size_t count = index_.size() - first;
  if (count == 0) return absl::OkStatus();
  values_.resize(index_.size() * floats_);
  std::vector<uint8_t> has_embedx(count);
  const absl::Status pulled =
      client_->Pull(table_, index_.keys().subspan(first), /*absent_is_zero=*/false,
                    values_.data() + first * floats_, has_embedx.data());
  if (!pulled.ok()) {
    values_.resize(first * floats_);
    return pulled;
  }
  Grow();
  return absl::OkStatus();
}

void LiveRows::Grow() {
  values_.resize(index_.size() * floats_);
  is_changed_.resize(index_.size(), 0);
  batch_of_.resize(index_.size(), 0);
  place_of_.resize(index_.size(), 0);
}

std::vector<Key> LiveRows::MissingOf(absl::Span<const Key> keys) const {
  data::KeyIndex missing;
  for (const Key key : keys) {
    if (index_.Find(key) == data::KeyIndex::kNone) missing.Add(key);
  }
  return {missing.keys().begin(), missing.keys().end()};
}

void LiveRows::Add(absl::Span<const Key> keys, const float* values) {
  for (size_t i = 0; i < keys.size(); ++i) {
    const size_t before = index_.size();
    const Row row = index_.Add(keys[i]);
    if (index_.size() == before) continue;
    Grow();
    std::copy_n(values + i * floats_, floats_, value(row));
  }
}

absl::Status LiveRows::Read(absl::Span<const Key> keys, bool absent_is_zero, float* out) {
  const uint32_t dim = this->dim();
  data::KeyIndex missing;
  std::vector<Row> place(keys.size(), data::KeyIndex::kNone);  // in `missing`
  for (size_t i = 0; i < keys.size(); ++i) {
    const Row row = index_.Find(keys[i]);
    if (row == data::KeyIndex::kNone) {
      place[i] = missing.Add(keys[i]);
    } else {
      std::copy_n(value(row) + layout_->weight_index(), dim, out + i * dim);
    }
  }
  std::vector<float> values(missing.size() * floats_);
  std::vector<uint8_t> has_embedx(missing.size());
  CISTERN_RETURN_IF_ERROR(
      client_->Pull(table_, missing.keys(), absent_is_zero, values.data(), has_embedx.data()));
  for (size_t i = 0; i < keys.size(); ++i) {
    if (place[i] == data::KeyIndex::kNone) continue;
    const float* weights = values.data() + size_t{place[i]} * floats_ + layout_->weight_index();
    std::copy_n(weights, dim, out + i * dim);
  }
  return absl::OkStatus();
}

void LiveRows::CopyWeights(absl::Span<const Row> rows, float* out) const {
  const uint32_t dim = this->dim();
  for (const Row row : rows) {
    std::copy_n(value(row) + layout_->weight_index(), dim, out);
    out += dim;
  }
}

absl::Status LiveRows::AddGradients(absl::Span<const Row> rows, const float* grads) {
  const uint32_t dim = this->dim();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] >= index_.size()) {
      return absl::InvalidArgumentError(
          "a gradient of a row that is no longer here: a batch must not outlive the rows' Clear");
    }
    for (uint32_t k = 0; k < dim; ++k) {
      if (std::isfinite(grads[i * dim + k])) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("the gradient of key ", index_.keys()[rows[i]], " is not finite"));
    }
  }
  gradients_.Add(rows, grads);
  return absl::OkStatus();
}

void LiveRows::DropGradients() {
  gradients_.Clear();
}

void LiveRows::Step(double learning_rate, uint64_t step) {
  const uint32_t dim = this->dim();
  const RuleParams rule = RuleAtStep(layout_->rule(), learning_rate, step);
  const float step_size = StepSize(layout_->rule(), learning_rate, step);
  const float* grad = gradients_.grads();
  for (const Row row : gradients_.rows()) {
    float* cells = value(row);
    ApplyRule(rule, step_size, dim, grad, cells + layout_->weight_index(),
              cells + layout_->state_index());
    if (!is_changed_[row]) {
      is_changed_[row] = 1;
      ++changed_;
    }
    grad += dim;
  }
  DropGradients();
}

absl::Status LiveRows::PushChanged() {
  constexpr size_t kRowsAtOnce = size_t{1} << 16;  // of the copy
  std::vector<Key> keys;
  std::vector<float> values;
  const std::vector<uint8_t> has_embedx(kRowsAtOnce, 1);
  auto push = [&]() -> absl::Status {
    CISTERN_RETURN_IF_ERROR(client_->Push(table_, keys, values.data(), has_embedx.data()));
    keys.clear();
    values.clear();
    return absl::OkStatus();
  };
  const auto [first, end] = layout_->rounded_cells();
  const CellRounding rounding = {first, end, layout_->seed(), client_->committed_pass() + 1};
  for (Row row = 0; row < index_.size(); ++row) {
    if (!is_changed_[row]) continue;
    keys.push_back(index_.keys()[row]);
    RoundCells(rounding, keys.back(), value(row));  // what the servers hold from now on
    values.insert(values.end(), value(row), value(row) + floats_);
    if (keys.size() == kRowsAtOnce) CISTERN_RETURN_IF_ERROR(push());
  }
  return keys.empty() ? absl::OkStatus() : push();
}

void LiveRows::Committed() {
  std::fill(is_changed_.begin(), is_changed_.end(), 0);
  changed_ = 0;
}

void LiveRows::Clear() {
  index_ = data::KeyIndex();
  values_.clear();
  is_changed_.clear();
  changed_ = 0;
  gradients_.Clear();
  batch_of_.clear();
  place_of_.clear();
}

}  // namespace cistern
