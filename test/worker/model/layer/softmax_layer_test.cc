#include "test/worker/model/model_bench.h"
#include "test/worker/model/model_texts.h"

namespace cistern::model {
namespace {

// The rows of a softmax add up to 1, whatever its inputs: a batch of one sample too.
TEST(Softmax, SumsToOneOverTheLastDimension) {
  ModelBench bench(WithSgd(OneSparse(), Embedding("emb", "data1", 3, "0") + "," +
                                            Simple("Softmax", "emb", "share") + "," +
                                            Simple("ReduceMean", "share", "means", R"("axis": 2)") +
                                            "," + Simple("Reshape", "means", "flat") + "," +
                                            Simple("ReduceSum", "flat", "logit", R"("axis": 1)")),
                   {}, 12);
  for (const size_t size : {1, 7}) {
    for (const float p : bench.Predict(bench.batch(size, 2))) {
      EXPECT_NEAR(p, 1 / (1 + std::exp(-4 / 3.0)), 1e-6);  // four slots, each a mean of 1 / 3
    }
  }
}

// A step on one sample, against the derivative of the loss in double.
TEST(Softmax, GradientsOfABatchOfOne) {
  ModelBench bench(AttentionText(), {}, 12);
  const data::HostBatch batch = bench.batch(1, 6);
  ReferenceModel reference = bench.Reference();
  bench.Train(batch, 1);
  const std::vector<double> table = bench.Weights(0);
  double largest = 0;
  for (size_t i = 0; i < table.size(); ++i) {
    double* const w = &reference.tables[0][i];
    const double expected = reference.Derivative(batch, 1, w);
    largest = std::max(largest, std::abs(expected));
    EXPECT_NEAR(*w - table[i], expected, 1e-5) << i;
  }
  EXPECT_GT(largest, 1e-3);
}

}  // namespace
}  // namespace cistern::model
