#include "test/worker/model/model_bench.h"
#include "test/worker/model/model_error.h"
#include "test/worker/model/model_texts.h"

namespace cistern::model {
namespace {

using ::testing::HasSubstr;

TEST(MatrixMultiply, ShapesMustFit) {
  EXPECT_THAT(BuildError({R"(layers.reshape1={"name":"x","type":"MatrixMultiply",
                              "bottom":["emb","emb"],"top":"reshape1"})"}),
              HasSubstr("bottoms 'emb' [b, 2, 4] and 'emb' [b, 2, 4] must be [b, m, k] and "
                        "[b, k, n]"));
  EXPECT_THAT(BuildError({InsteadOfRelu("MatrixMultiply")}), HasSubstr("must have 2"));
}

// One sample: the gradients of both factors, of a tensor that is read as two of them, and through
// tensors of three dimensions.
TEST(MatrixMultiply, GradientsOfABatchOfOne) {
  ModelBench bench(DinText(), {}, 12);
  const data::HostBatch batch = bench.batch(1, 7);
  ReferenceModel reference = bench.Reference();
  bench.Train(batch, 1);
  double largest = 0;
  for (size_t t = 0; t < 2; ++t) {
    const std::vector<double> table = bench.Weights(t);
    for (size_t i = 0; i < table.size(); ++i) {
      double* const w = &reference.tables[t][i];
      const double expected = reference.Derivative(batch, 1, w);
      largest = std::max(largest, std::abs(expected));
      EXPECT_NEAR(*w - table[i], expected, 1e-5) << t << " " << i;
    }
  }
  EXPECT_GT(largest, 1e-3);
}

}  // namespace
}  // namespace cistern::model
