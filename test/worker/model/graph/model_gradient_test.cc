// Compares the gradients of whole models with finite differences of a forward pass in double.
#include <gtest/gtest.h>

#include <set>

#include "test/worker/model/model_bench.h"
#include "test/worker/model/model_texts.h"

namespace cistern::model {
namespace {

constexpr size_t kRows = 12;

class ModelGradient : public ::testing::TestWithParam<ModelCase> {};

// With SGD and learning rate 1 a step subtracts the gradient from each weight.
TEST_P(ModelGradient, EqualsTheDerivativeOfTheLossInDouble) {
  ModelBench bench(GetParam().text, GetParam().overrides, kRows);
  ASSERT_NE(bench.model, nullptr);
  const data::HostBatch batch = bench.batch(13, 3);
  const uint64_t step = 1;
  ReferenceModel reference = bench.Reference();
  const double loss = reference.Loss(batch, step);

  EXPECT_NEAR(bench.Train(batch, step).loss, loss, 2e-6 * (1 + loss));

  const std::vector<double> weights = bench.DenseColumn(0);
  ASSERT_EQ(weights.size(), reference.weights.size());
  double largest = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double expected = reference.Derivative(batch, step, &reference.weights[i]);
    largest = std::max(largest, std::abs(expected));
    EXPECT_NEAR(reference.weights[i] - weights[i], expected, 3e-6 + 3e-5 * std::abs(expected))
        << "dense weight " << i;
  }
  for (size_t t = 0; t < reference.tables.size(); ++t) {
    const std::vector<double> table = bench.Weights(t);
    for (size_t i = 0; i < table.size(); ++i) {
      double* const w = &reference.tables[t][i];
      const double expected = reference.Derivative(batch, step, w);
      largest = std::max(largest, std::abs(expected));
      EXPECT_NEAR(*w - table[i], expected, 3e-6 + 3e-5 * std::abs(expected))
          << bench.config.embeddings[t].name << " cell " << i;
    }
  }
  EXPECT_GT(largest, 1e-3);  // the gradients are not all zero
}

TEST_P(ModelGradient, PredictionsEqualTheForwardPassInDouble) {
  ModelBench bench(GetParam().text, GetParam().overrides, kRows);
  ASSERT_NE(bench.model, nullptr);
  for (uint64_t step = 1; step <= 3; ++step) bench.Train(bench.batch(16, 10 + step), step);
  const data::HostBatch batch = bench.batch(9, 99);
  const std::vector<double> expected = bench.Reference().Predict(batch);
  const std::vector<float> predictions = bench.Predict(batch);
  ASSERT_EQ(predictions.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(predictions[i], expected[i], 1e-5) << i;
}

INSTANTIATE_TEST_SUITE_P(
    Models, ModelGradient,
    ::testing::ValuesIn(ArchitecturesAnd({
        {"DnnWithRowL2", DnnText(), {"cistern.embedding_l2=0.3"}},
        {"DnnWithL2", DnnText(), {"layers.loss.regularizer=L2", "layers.loss.lambda=0.5"}},
        {"DnnWithL1", DnnText(), {"layers.loss.regularizer=L1", "layers.loss.lambda=0.5"}},
        {"DcnWithL1", DcnText(), {"layers.loss.regularizer=L1", "layers.loss.lambda=0.5"}},
        {"SeveralLabels", WithLoss(DlrmText(), 3, 3, R"("type": "BinaryCrossEntropyLoss")"), {}},
        {"TwoClasses", WithLoss(DlrmText(), 1, 2, R"("type": "CrossEntropyLoss")"), {}},
        {"MultiLabel",
         WithLoss(DlrmText(), 3, 3,
                  R"("type": "MultiCrossEntropyLoss", "target_weight": [1, 0.5, 3])"),
         {"layers.loss.regularizer=L2", "layers.loss.lambda=0.5"}},
        {"TangledWithL2", TangledText(), {"layers.loss.regularizer=L2", "layers.loss.lambda=0.5"}},
    })),
    [](const auto& test) { return test.param.name; });

// A layer type that no architecture has is one whose gradient nobody checks.
TEST(Architectures, HaveEveryLayerType) {
  std::set<std::string> tested;
  for (const ModelCase& one : Architectures()) {
    const ModelConfig config =
        ParseModelConfig(one.text, "model.json", one.overrides, LayerGrammars()).value();
    for (const LayerConfig& layer : config.layers) tested.insert(layer.type);
  }
  for (const LayerGrammar& layer : DenseLayers()) {
    if (layer.expand != nullptr) continue;  // other layers, by the time that it is read
    EXPECT_TRUE(tested.count(layer.type) > 0) << "add a layer of type '" << layer.type
                                              << "' to a text of test/worker/model/model_texts.h";
  }
}

}  // namespace
}  // namespace cistern::model
