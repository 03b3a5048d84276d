// Compares every layer, loss and regularizer with the values of another program
// (make_reference_values.py).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "test/worker/model/model_bench.h"
#include "worker/model/config/grammar.h"
#include "worker/model/layer/layer_list.h"

namespace cistern::model {
namespace {

using Json = nlohmann::json;

Json ReadCases() {
  // CISTERN_SOURCE_DIR is set if the test runs on another machine than the build.
  const char* folder = std::getenv("CISTERN_SOURCE_DIR");
  std::ifstream file(std::string(folder != nullptr ? folder : CISTERN_SOURCE_DIR) +
                     "/test/worker/model/reference_values.json");
  return Json::parse(file);
}

// With SGD and learning rate 1 a step subtracts the gradient from each weight.
std::string ModelText(const Json& one) {
  const size_t samples = one["batch"]["keys"].size() / 3;
  return Json{{"solver", {{"max_iter", 1}, {"batchsize", samples}}},
              {"optimizer", {{"type", "SGD"}, {"sgd_hparam", {{"learning_rate", 1.0}}}}},
              {"layers", one["layers"]}}
      .dump();
}

data::HostBatch ReadBatch(const Json& json, size_t slots) {
  data::HostBatch batch;
  batch.label = json["label"].get<std::vector<float>>();
  batch.dense = json["dense"].get<std::vector<float>>();
  batch.size = json["keys"].size() / slots;
  data::HostSparseBatch& sparse = batch.sparse.emplace_back();
  sparse.slot_num = static_cast<uint32_t>(slots);
  sparse.offsets = {0};
  for (const Json& keys : json["keys"]) {
    for (const Json& key : keys) sparse.rows.push_back(key.get<Row>());
    sparse.offsets.push_back(static_cast<uint32_t>(sparse.rows.size()));
  }
  MakeSegments(&sparse);
  return batch;
}

void WriteWeights(const Json& one, ModelBench* bench) {
  const std::vector<float> weights = one["weights"];
  if (!weights.empty()) {
    ASSERT_TRUE(bench->model->WriteDense(0, weights).ok());
  }
  for (size_t t = 0; t < bench->tables.size(); ++t) {
    const std::vector<float> table = one["tables"][t];
    const size_t width = table.size() / bench->tables[t]->rows();
    HostTable host = bench->Read(t);
    for (size_t r = 0; r < bench->tables[t]->rows(); ++r) {
      std::copy_n(&table[r * width], width, host.row(r));
    }
    bench->Write(t, host);
  }
}

void ExpectTaken(const std::vector<double>& before, const std::vector<double>& after,
                 const std::vector<double>& gradient, const std::string& what) {
  ASSERT_EQ(before.size(), gradient.size()) << what;
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_NEAR(before[i] - after[i], gradient[i], 1e-6 + 3e-6 * std::abs(gradient[i]))
        << what << " " << i;
  }
}

struct ReferenceCase {
  std::string name;
  Json json;
};

void PrintTo(const ReferenceCase& one, std::ostream* out) {
  *out << one.name;
}

std::vector<ReferenceCase> Cases() {
  std::vector<ReferenceCase> cases;
  for (const Json& one : ReadCases()) cases.push_back({one["name"], one});
  return cases;
}

class ReferenceValues : public ::testing::TestWithParam<ReferenceCase> {};

TEST_P(ReferenceValues, EqualThoseOfAnotherProgram) {
  const Json& one = GetParam().json;
  const size_t width = one["layers"][1]["sparse_embedding_hparam"]["embedding_vec_size"];
  ModelBench bench(ModelText(one), {}, one["tables"][0].size() / width);
  ASSERT_NE(bench.model, nullptr);
  WriteWeights(one, &bench);
  const data::HostBatch batch = ReadBatch(one["batch"], bench.config.data.sparse[0].slot_num);

  const std::vector<double> expected = one["predictions"];
  const std::vector<float> predictions = bench.Predict(batch);
  ASSERT_EQ(predictions.size(), expected.size());
  // A prediction normalizes with the running statistics, not with those of the batch.
  const bool normalizes = one["name"] == "batch_norm" || one["name"] == "prelu_dice";
  for (size_t i = 0; i < expected.size() && !normalizes; ++i) {
    EXPECT_NEAR(predictions[i], expected[i], 1e-6) << "prediction " << i;
  }

  const bool dense = !one["weights"].empty();
  const std::vector<double> before = dense ? bench.DenseColumn(0) : std::vector<double>();
  std::vector<std::vector<double>> tables;
  for (size_t t = 0; t < bench.tables.size(); ++t) tables.push_back(bench.Weights(t));
  const double loss = one["loss"];
  EXPECT_NEAR(bench.Train(batch, 1).loss, loss, 1e-6 * (1 + loss));
  ExpectTaken(before, dense ? bench.DenseColumn(0) : std::vector<double>(), one["weight_gradients"],
              "weight");
  for (size_t t = 0; t < tables.size(); ++t) {
    ExpectTaken(tables[t], bench.Weights(t), one["table_gradients"][t],
                absl::StrCat("weight of table ", t));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ReferenceValues, ::testing::ValuesIn(Cases()),
                         [](const auto& test) { return test.param.name; });

// Fails if a layer is added without reference values. Dropout is excluded: its random draws are
// specific to Cistern.
TEST(ReferenceValueCases, CoverEveryLayer) {
  std::set<std::string> covered = {"Dropout"};
  for (const Json& one : ReadCases()) {
    for (const Json& layer : one["layers"]) covered.insert(layer["type"]);
  }
  for (const LayerGrammar& grammar : LayerGrammars()) {
    if (grammar.role == LayerRole::kEmbedding || grammar.role == LayerRole::kData) continue;
    EXPECT_EQ(covered.count(grammar.type), 1u)
        << grammar.type << ": add a case to test/worker/model/make_reference_values.py, and run it";
  }
}

}  // namespace
}  // namespace cistern::model
