// A committed state whose dense tables a test chooses.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/worker/model/config/config_parsing.h"
#include "worker/export/committed_model.h"
#include "worker/model/graph/model.h"

namespace cistern {

// Parameter i of the table "dense" is i, with the optimizer's state at -1; statistic i is 1000 + i.
class StoredModel : public CommittedModel {
 public:
  explicit StoredModel(const model::ModelConfig& config) {
    DeviceContext device;
    schema_ = model::Model::Create(config, device).value()->schema();
    for (const v1::DenseTableSpec& table : schema_.dense_tables()) {
      const size_t columns = static_cast<size_t>(table.columns_size());
      std::vector<float>& cells = tables_.emplace_back(table.rows() * columns, -1.0f);
      const size_t first = table.name() == "dense" ? 0 : 1000;
      for (size_t row = 0; row < table.rows(); ++row) {
        cells[row * columns] = static_cast<float>(first + row);
      }
    }
  }

  const std::string& name() const override { return name_; }
  CommittedVersion version() const override { return {12, 0xabc, 34}; }
  const v1::Schema& schema() const override { return schema_; }
  uint32_t shard_num() const override { return 1; }
  absl::Status Scan(TableId, const Visit&) override { return absl::UnimplementedError("Scan"); }
  absl::Status Pull(TableId, absl::Span<const Key>, float*, uint8_t*) override {
    return absl::UnimplementedError("Pull");
  }
  absl::StatusOr<std::vector<float>> PullDense(TableId table) override { return tables_[table]; }
  absl::Status Recheck() override { return recheck; }

  void SetParameter(size_t i, float value) {
    tables_[0][i * static_cast<size_t>(schema_.dense_tables(0).columns_size())] = value;
  }
  std::vector<float>& table(size_t i) { return tables_[i]; }

  absl::Status recheck;

 private:
  const std::string name_ = "runs/a, commit 12";
  v1::Schema schema_;
  std::vector<std::vector<float>> tables_;
};

// The small model file with other layers between its Concat (8 columns of the embedding, 3 dense)
// and its last layer, fc2 of one column, which reads `last`.
inline std::string WithLayers(const std::string& layers, const std::string& last) {
  const std::string text =
      model::Replaced(R"("bottom": "relu1")", absl::StrCat(R"("bottom": ")", last, "\""));
  const size_t from = text.find(R"({"name": "fc1")"), to = text.find(R"({"name": "fc2")");
  return absl::StrCat(text.substr(0, from), layers, layers.empty() ? "" : ",\n    ",
                      text.substr(to));
}

}  // namespace cistern
