#include "test/worker/model/model_bench.h"
#include "test/worker/model/model_error.h"
#include "test/worker/model/model_texts.h"

namespace cistern::model {
namespace {

std::string NormalizedDense() {
  return WithSgd(OneSparse(), Simple("BatchNorm", "dense", "bn",
                                     R"("bn_param": {"factor": 0.25, "eps": 1e-5})") +
                                  "," + FullyConnected("bn", "logit", 1));
}

// running = (1 - factor) * running + factor * batch, with the unbiased variance (cuDNN).
TEST(BatchNormLayer, RunningStatisticsFollowTheBatch) {
  ModelBench bench(NormalizedDense(), {}, 0);
  ASSERT_EQ(bench.model->schema().dense_tables_size(), 2);
  EXPECT_EQ(bench.Dense(1), (std::vector<float>{0, 0, 0, 1, 1, 1}));
  const data::HostBatch batch = bench.batch(11, 4);
  bench.Train(batch, 1);
  const std::vector<float> running = bench.Dense(1);
  for (size_t c = 0; c < 3; ++c) {
    double mean = 0, squares = 0;
    for (size_t i = 0; i < 11; ++i) mean += batch.dense[i * 3 + c] / 11.0;
    for (size_t i = 0; i < 11; ++i) squares += std::pow(batch.dense[i * 3 + c] - mean, 2);
    EXPECT_NEAR(running[c], 0.25 * mean, 1e-6);
    EXPECT_NEAR(running[3 + c], 0.75 + 0.25 * squares / 10, 1e-6);
  }
}

TEST(BatchNormLayer, PredictionUsesAndKeepsTheRunningStatistics) {
  ModelBench bench(NormalizedDense(), {}, 0);
  const std::vector<float> running = {0.5f, -0.25f, 0, 4, 0.25f, 1};
  ASSERT_TRUE(bench.model->WriteDense(1, running).ok());
  const data::HostBatch batch = bench.batch(5, 1);
  const std::vector<double> expected = bench.Reference().Predict(batch);
  const std::vector<float> predictions = bench.Predict(batch);
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(predictions[i], expected[i], 1e-6);
  EXPECT_EQ(bench.Dense(1), running);
}

TEST(BatchNormLayer, RequiresAMatrix) {
  EXPECT_THAT(BuildError({InsteadOfRelu("BatchNorm"), "layers.x.bottom=emb"}),
              ::testing::HasSubstr("bottom 'emb' is [b, 2, 4]; it must have 2 dimensions"));
}

}  // namespace
}  // namespace cistern::model
