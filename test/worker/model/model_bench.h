// A fixture for model tests: a model, random batches as a pass would stage them, and tables with
// the initial values of their keys.
#pragma once

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "common/value/value_layout.h"
#include "test/worker/model/reference_model.h"
#include "test/worker/model/test_device.h"
#include "worker/model/batch/row_stage.h"
#include "worker/model/config/grammar.h"
#include "worker/model/graph/model.h"
#include "worker/model/layer/layer_list.h"

namespace cistern::model {

// Fills the segments of `batch` from its rows.
inline void MakeSegments(data::HostSparseBatch* batch) {
  std::map<Row, std::vector<uint32_t>> occurrences;
  for (size_t o = 0; o + 1 < batch->offsets.size(); ++o) {
    for (size_t k = batch->offsets[o]; k < batch->offsets[o + 1]; ++k) {
      occurrences[batch->rows[k]].push_back(static_cast<uint32_t>(o));
    }
  }
  batch->segment_offsets = {0};
  for (const auto& [row, outputs] : occurrences) {
    batch->segment_rows.push_back(row);
    batch->segment_outputs.insert(batch->segment_outputs.end(), outputs.begin(), outputs.end());
    batch->segment_offsets.push_back(static_cast<uint32_t>(batch->segment_outputs.size()));
  }
}

// Makes `size` random samples of the shape of `data`. A slot holds 0 to max_nnz of the `rows` rows.
inline data::HostBatch MakeHostBatch(const DataConfig& data, size_t size, size_t rows,
                                     size_t max_nnz, uint32_t seed, bool masked = false) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  data::HostBatch batch;
  batch.size = size;
  for (size_t i = 0; i < size * data.label_dim; ++i) {
    batch.label.push_back(static_cast<float>(random() % 2));
    // Masks some labels; only MultiCrossEntropyLoss supports masked labels.
    if (masked && random() % 4 == 0) batch.label.back() = -1;
  }
  for (size_t i = 0; i < size * data.dense_dim; ++i) batch.dense.push_back(uniform(random));
  for (const SparseInputConfig& input : data.sparse) {
    data::HostSparseBatch& sparse = batch.sparse.emplace_back();
    sparse.slot_num = input.slot_num;
    sparse.offsets = {0};
    for (size_t o = 0; o < size * input.slot_num; ++o) {
      const size_t nnz = rows == 0 ? 0 : random() % (max_nnz + 1);
      for (size_t k = 0; k < nnz; ++k) {
        sparse.rows.push_back(static_cast<Row>(random() % rows));
      }
      sparse.offsets.push_back(static_cast<uint32_t>(sparse.rows.size()));
    }
    MakeSegments(&sparse);
  }
  return batch;
}

// A copy of a pass table in host memory.
struct HostTable {
  size_t stride = 0;
  std::vector<float> values;
  std::vector<uint8_t> has_embedx;

  float* row(size_t r) { return values.data() + r * stride; }
  const float* row(size_t r) const { return values.data() + r * stride; }
};

struct ModelBench {
  // rows: number of rows of each table; row r holds the initial value of key r.
  // layers: the layer types that the model may have.
  ModelBench(const std::string& text, const std::vector<std::string>& overrides, size_t rows,
             const std::vector<LayerGrammar>& layers = LayerGrammars()) {
    absl::StatusOr<ModelConfig> parsed = ParseModelConfig(text, "model.json", overrides, layers);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    if (!parsed.ok()) return;
    config = *parsed;
    absl::StatusOr<std::unique_ptr<Model>> made = Model::Create(config, TestDevice());
    EXPECT_TRUE(made.ok()) << made.status();
    if (!made.ok()) return;
    model = *std::move(made);
    for (size_t r = 0; r < rows; ++r) keys.push_back(r);
    for (const EmbeddingConfig& embedding : config.embeddings) {
      tables.push_back(
          std::make_unique<PassTable>(*ValueLayout::Create(embedding.spec), TestDevice()));
      PassTable& table = *tables.back();
      EXPECT_TRUE(table.Resize(rows).ok());
      table.set_keys(keys);
      pointers.push_back(&table);
      HostTable first = {table.stride(), std::vector<float>(rows * table.stride()),
                         std::vector<uint8_t>(rows)};
      for (size_t r = 0; r < rows; ++r) {
        first.has_embedx[r] = table.layout().Initialize(keys[r], first.row(r));
      }
      Write(tables.size() - 1, first);
    }
  }

  HostTable Read(size_t i) const {
    HostTable host;
    host.stride = tables[i]->stride();
    EXPECT_TRUE(TestDevice().stream().Wait().ok());
    const absl::Status status =
        RowStage(TestDevice())
            .Read(*tables[i],
                  [&](size_t, size_t count, const float* values, const uint8_t* has_embedx) {
                    host.values.insert(host.values.end(), values, values + count * host.stride);
                    host.has_embedx.insert(host.has_embedx.end(), has_embedx, has_embedx + count);
                    return absl::OkStatus();
                  });
    EXPECT_TRUE(status.ok()) << status;
    return host;
  }
  void Write(size_t i, const HostTable& host) {
    EXPECT_TRUE(TestDevice().stream().Wait().ok());
    const auto fill = [&](size_t first, size_t count, auto, float* values, uint8_t* has_embedx) {
      std::copy_n(host.row(first), count * host.stride, values);
      std::copy_n(&host.has_embedx[first], count, has_embedx);
      return absl::OkStatus();
    };
    const absl::Status status = RowStage(TestDevice()).Write(fill, *tables[i]);
    EXPECT_TRUE(status.ok()) << status;
  }

  data::HostBatch batch(size_t size, uint32_t seed, size_t max_nnz = 3) const {
    const bool masked = config.layers.back().type == "MultiCrossEntropyLoss";
    return MakeHostBatch(config.data, size, keys.size(), max_nnz, seed, masked);
  }
  StepResult Train(const data::HostBatch& batch, uint64_t step) {
    absl::StatusOr<StepResult> result = model->Train(batch, pointers, step, 1.0);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result : StepResult();
  }
  std::vector<float> Predict(const data::HostBatch& batch, std::vector<float>* logits = nullptr) {
    std::vector<float> predictions;
    const absl::Status status = model->Predict(batch, pointers, &predictions, logits);
    EXPECT_TRUE(status.ok()) << status;
    return predictions;
  }
  // A dense table as the servers store it.
  std::vector<float> Dense(size_t i) const {
    absl::StatusOr<std::vector<float>> values = model->ReadDense(i);
    EXPECT_TRUE(values.ok()) << values.status();
    return values.ok() ? *std::move(values) : std::vector<float>();
  }
  // One column of the table "dense"; column 0 is the weights.
  std::vector<double> DenseColumn(size_t column) const {
    const v1::DenseTableSpec& table = model->schema().dense_tables(0);
    const std::vector<float> values = Dense(0);
    std::vector<double> out;
    for (size_t r = 0; r < table.rows(); ++r) {
      out.push_back(values[r * table.columns_size() + column]);
    }
    return out;
  }
  // The weights of a table with the embedding accessor: [rows, vec_size].
  std::vector<double> Weights(size_t i) const {
    std::vector<double> out;
    const HostTable host = Read(i);
    for (size_t r = 0; r < tables[i]->rows(); ++r) {
      const float* row = host.row(r) + tables[i]->layout().weight_index();
      out.insert(out.end(), row, row + config.embeddings[i].vec_size);
    }
    return out;
  }
  // The same model in double, with the current weights.
  ReferenceModel Reference() const {
    ReferenceModel reference(config);
    for (int i = 0; i < model->schema().dense_tables_size(); ++i) {
      if (model->schema().dense_tables(i).name() == "dense") reference.weights = DenseColumn(0);
      if (model->schema().dense_tables(i).name() != "dense_state") continue;
      const std::vector<float> statistics = Dense(static_cast<size_t>(i));
      reference.running.assign(statistics.begin(), statistics.end());
    }
    for (size_t i = 0; i < tables.size(); ++i) reference.tables.push_back(Weights(i));
    return reference;
  }

  ModelConfig config;
  std::unique_ptr<Model> model;
  std::vector<Key> keys;
  std::vector<std::unique_ptr<PassTable>> tables;
  std::vector<PassTable*> pointers;
};

}  // namespace cistern::model
