// A committed model whose rows a test writes: the source of exports.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/value/accessor/ctr_accessor.h"
#include "common/value/value_layout.h"
#include "worker/export/committed_model.h"
#include "worker/model/graph/model.h"

namespace cistern {

// Rows and dense parameters of the tables of `config`. Without only_changed, Scan visits all rows;
// with it, those set since the last call of Commit, and ScanRemoved those removed since.
class MemoryModel : public CommittedModel {
 public:
  explicit MemoryModel(const model::ModelConfig& config) {
    DeviceContext device;
    const auto model = model::Model::Create(config, device).value();
    schema_ = model->schema();
    for (const v1::TableSpec& table : schema_.tables()) {
      layouts_.push_back(ValueLayout::Create(table).value());
    }
    rows_.resize(layouts_.size());
    changed_.resize(layouts_.size());
    removed_.resize(layouts_.size());
    for (int i = 0; i < schema_.dense_tables_size(); ++i) {
      dense_.push_back(model->ReadDense(static_cast<size_t>(i)).value());
    }
    version_ = {.commit = 1, .manifest_xxh3 = 1, .pass = 1};
  }

  // Sets the weights of a row (embed_w and embedx of a ctr row), and other cells to nonsense.
  void Set(TableId table, Key key, const std::vector<float>& weights) {
    const ValueLayout& layout = layouts_[table];
    std::vector<float> value(layout.full_floats(), 77.0f);
    auto from = weights.begin();
    if (layout.accessor().has_statistics()) value[CtrCells::kEmbedW] = *from++;
    std::copy(from, weights.end(), value.begin() + layout.weight_index());
    rows_[table][key] = changed_[table][key] = value;
    removed_[table].erase(key);
  }
  void Remove(TableId table, Key key) {
    rows_[table].erase(key);
    changed_[table].erase(key);
    removed_[table].insert(key);
  }
  std::vector<float>& dense(TableId table) { return dense_[table]; }
  size_t rows(TableId table) const { return rows_[table].size(); }
  void Commit() {
    ++version_.commit;
    ++version_.manifest_xxh3;
    ++version_.pass;
    for (auto& table : changed_) table.clear();
    for (auto& table : removed_) table.clear();
  }
  void set_only_changed(bool only) { only_changed_ = only; }

  const std::string& name() const override { return name_; }
  CommittedVersion version() const override { return version_; }
  const v1::Schema& schema() const override { return schema_; }
  uint32_t shard_num() const override { return 1; }
  absl::Status Scan(TableId table, const Visit& visit) override {
    for (const auto& [key, value] : only_changed_ ? changed_[table] : rows_[table]) {
      CISTERN_RETURN_IF_ERROR(visit(0, key, value.data(), true));
    }
    return absl::OkStatus();
  }
  absl::Status ScanRemoved(TableId table, const std::function<absl::Status(Key)>& visit) override {
    for (const Key key : only_changed_ ? removed_[table] : std::set<Key>()) {
      CISTERN_RETURN_IF_ERROR(visit(key));
    }
    return absl::OkStatus();
  }
  absl::Status Pull(TableId table, absl::Span<const Key> keys, float* values,
                    uint8_t* has_embedx) override {
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto found = rows_[table].find(keys[i]);
      if (found == rows_[table].end()) return absl::InternalError("no such row");
      std::copy(found->second.begin(), found->second.end(), values + i * found->second.size());
      has_embedx[i] = 1;
    }
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<float>> PullDense(TableId table) override { return dense_[table]; }
  absl::Status Recheck() override { return recheck; }

  absl::Status recheck;  // what Recheck returns

 private:
  using Rows = std::map<Key, std::vector<float>>;
  const std::string name_ = "memory";
  v1::Schema schema_;
  std::vector<ValueLayout> layouts_;
  std::vector<Rows> rows_, changed_;
  std::vector<std::set<Key>> removed_;
  std::vector<std::vector<float>> dense_;
  CommittedVersion version_;
  bool only_changed_ = false;
};

}  // namespace cistern
