#include "test/worker/model/model_bench.h"
#include "test/worker/model/model_texts.h"

namespace cistern::model {
namespace {

// Initial weights of HugeCTR's InnerProduct: W XavierNorm, b normal with standard deviation
// sqrt(1 / out).
TEST(FullyConnectedLayer, StartsFromTheDefaultDistributions) {
  const std::string text =
      WithSgd(R"("dense": {"top": "dense", "dense_dim": 100}, "sparse": [])",
              FullyConnected("dense", "fc", 300) + "," + FullyConnected("fc", "logit", 1));
  ModelBench bench(text, {}, 0);
  const std::vector<double> weights = bench.DenseColumn(0);
  ASSERT_EQ(weights.size(), 100 * 300 + 300 + 300 + 1u);
  const auto deviation = [&weights](size_t first, size_t count) {
    double squares = 0;
    for (size_t i = first; i < first + count; ++i) squares += weights[i] * weights[i];
    return std::sqrt(squares / static_cast<double>(count));
  };
  const double expected = std::sqrt(2.0 / 400) / 0.87962566;
  EXPECT_NEAR(deviation(0, 30000), expected, 0.02 * expected);
  EXPECT_NEAR(deviation(30000, 300), std::sqrt(1.0 / 300), 0.15 * std::sqrt(1.0 / 300));
}

TEST(FullyConnectedLayer, InitialWeightsDependOnTheSolverSeed) {
  const std::string text = WithSgd(R"("dense": {"top": "dense", "dense_dim": 4}, "sparse": [])",
                                   FullyConnected("dense", "logit", 1));
  EXPECT_EQ(ModelBench(text, {}, 0).DenseColumn(0), ModelBench(text, {}, 0).DenseColumn(0));
  EXPECT_NE(ModelBench(text, {}, 0).DenseColumn(0),
            ModelBench(text, {"solver.seed=6"}, 0).DenseColumn(0));
}

}  // namespace
}  // namespace cistern::model
