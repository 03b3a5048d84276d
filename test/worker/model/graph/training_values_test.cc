// Trains MMoE with two labels for 100 steps beside another program (make_training_values.py).
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "test/worker/model/model_bench.h"

namespace cistern::model {
namespace {

using Json = nlohmann::json;

Json ReadTrainingValues() {
  // CISTERN_SOURCE_DIR is set if the test runs on another machine than the build.
  const char* folder = std::getenv("CISTERN_SOURCE_DIR");
  std::ifstream file(std::string(folder != nullptr ? folder : CISTERN_SOURCE_DIR) +
                     "/test/worker/model/training_values.json");
  return Json::parse(file);
}

data::HostBatch BatchOf(const Json& json, uint32_t slots) {
  data::HostBatch batch;
  batch.label = json["label"].get<std::vector<float>>();
  batch.dense = json["dense"].get<std::vector<float>>();
  batch.size = json["keys"].size() / slots;
  data::HostSparseBatch& sparse = batch.sparse.emplace_back();
  sparse.slot_num = slots;
  sparse.offsets = {0};
  for (const Json& keys : json["keys"]) {
    for (const Json& key : keys) sparse.rows.push_back(key.get<Row>());
    sparse.offsets.push_back(static_cast<uint32_t>(sparse.rows.size()));
  }
  MakeSegments(&sparse);
  return batch;
}

void ExpectPredictions(const Json& expected, const std::vector<float>& predictions) {
  ASSERT_EQ(predictions.size(), expected.size());
  for (size_t i = 0; i < predictions.size(); ++i) {
    EXPECT_NEAR(predictions[i], expected[i].get<double>(), 1e-6) << i;
  }
}

TEST(TrainingValues, MmoeOfTwoLabelsEqualsPyTorchAfter100Steps) {
  const Json values = ReadTrainingValues();
  const std::vector<data::HostBatch> batches = [&] {
    std::vector<data::HostBatch> read;
    for (const Json& batch : values["batches"]) read.push_back(BatchOf(batch, 3));
    return read;
  }();
  const data::HostBatch held_out = BatchOf(values["held_out"], 3);
  const Json file = {
      {"solver", {{"max_iter", values["steps"]}, {"batchsize", held_out.size}}},
      {"optimizer",
       {{"type", "SGD"}, {"sgd_hparam", {{"learning_rate", values["learning_rate"]}}}}},
      {"layers", values["layers"]}};
  const std::vector<float> table = values["table"];
  constexpr size_t kWidth = 4;
  ModelBench bench(file.dump(), {}, table.size() / kWidth);
  ASSERT_NE(bench.model, nullptr);
  ASSERT_TRUE(bench.model->WriteDense(0, values["weights"].get<std::vector<float>>()).ok());
  HostTable rows = bench.Read(0);
  for (size_t r = 0; r * kWidth < table.size(); ++r) {
    std::copy_n(&table[r * kWidth], kWidth, rows.row(r));
  }
  bench.Write(0, rows);

  ExpectPredictions(values["predictions_before"], bench.Predict(held_out));
  const uint64_t steps = values["steps"];
  for (uint64_t step = 1; step <= steps; ++step) {
    const double loss = bench.Train(batches[(step - 1) % batches.size()], step).loss;
    EXPECT_NEAR(loss, values["losses"][step - 1].get<double>(), 2e-6) << "step " << step;
  }
  ExpectPredictions(values["predictions"], bench.Predict(held_out));
}

}  // namespace
}  // namespace cistern::model
