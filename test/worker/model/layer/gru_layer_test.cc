#include "test/worker/model/model_bench.h"
#include "test/worker/model/model_error.h"
#include "test/worker/model/model_texts.h"

namespace cistern::model {
namespace {

using ::testing::HasSubstr;

TEST(Gru, SizesMustFit) {
  EXPECT_THAT(BuildError({InsteadOfRelu("GRU", R"("gru_param":{"num_output":2})")}),
              HasSubstr("bottom 'fc1' is [b, 5]: give SeqLength and vector_size, or put a Reshape "
                        "with time_step before it"));
  EXPECT_THAT(BuildError({InsteadOfRelu(
                  "GRU", R"("gru_param":{"num_output":2,"SeqLength":2,"vector_size":3})")}),
              HasSubstr("SeqLength is 2, vector_size is 3 and bottom 'fc1' is [b, 5]: it must be "
                        "[b, 6]"));
  EXPECT_THAT(BuildError({R"(layers.reshape1={"name":"x","type":"GRU","bottom":"emb",
                              "top":"reshape1","gru_param":{"num_output":2,"SeqLength":5}})"}),
              HasSubstr("bottom 'emb' is [b, 2, 4]: it must be [b, 5, 4]"));
}

// Gradients of all weights and rows, against the derivative of the loss in double.
void ExpectGruGradients(size_t samples, size_t most_keys) {
  ModelBench bench(GruText(), {}, 12);
  const data::HostBatch batch =
      MakeHostBatch(bench.config.data, samples, most_keys == 0 ? 0 : 12, most_keys, 4);
  ReferenceModel reference = bench.Reference();
  bench.Train(batch, 1);
  const std::vector<double> weights = bench.DenseColumn(0), table = bench.Weights(0);
  double largest = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double expected = reference.Derivative(batch, 1, &reference.weights[i]);
    largest = std::max(largest, std::abs(expected));
    EXPECT_NEAR(reference.weights[i] - weights[i], expected, 1e-5) << i;
  }
  for (size_t i = 0; i < table.size(); ++i) {
    double* const w = &reference.tables[0][i];
    EXPECT_NEAR(*w - table[i], reference.Derivative(batch, 1, w), 1e-5) << i;
  }
  EXPECT_GT(largest, 1e-3);
}

TEST(Gru, GradientsOfABatchOfOne) {
  ExpectGruGradients(1, 3);
}

TEST(Gru, GradientsOfEmptySequences) {
  ExpectGruGradients(5, 0);
}

TEST(Gru, PredictsMoreSamplesThanItTrainsOn) {
  ModelBench bench(GruText(), {"solver.batchsize=3", "solver.batchsize_eval=50"}, 12);
  bench.Train(bench.batch(3, 1), 1);
  const data::HostBatch batch = bench.batch(50, 2);
  const std::vector<double> expected = bench.Reference().Predict(batch);
  const std::vector<float> predictions = bench.Predict(batch);
  ASSERT_EQ(predictions.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(predictions[i], expected[i], 1e-6) << i;
}

}  // namespace
}  // namespace cistern::model
