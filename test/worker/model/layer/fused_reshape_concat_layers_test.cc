#include "test/worker/model/model_bench.h"
#include "test/worker/model/model_error.h"
#include "test/worker/model/model_texts.h"

namespace cistern::model {
namespace {

using ::testing::HasSubstr;

// The logit is a sum over one top, and nothing reads the other.
TEST(FusedReshapeConcat, TheLastSlotIsTheItem) {
  for (const auto& [top, factor] : {std::pair<std::string, double>("history", 3), {"item", 1}}) {
    const std::string row =
        Simple("Reshape", top, "row", "\"leading_dim\": " + std::to_string(factor == 3 ? 9 : 3));
    ModelBench bench(
        WithSgd(OneSparse(), Embedding("good", "data1", 2, "0") + "," +
                                 Embedding("kind", "data1", 1, "0") +
                                 R"(,{"type": "FusedReshapeConcat", "name": "f",
                                                   "bottom": ["good", "kind"],
                                                   "top": ["history", "item"]},)" +
                                 row + "," + Simple("ReduceSum", "row", "logit", R"("axis": 1)")),
        {}, 10);
    const data::HostBatch batch = bench.batch(3, 4);
    const std::vector<double> good = bench.Weights(0), kind = bench.Weights(1);
    const std::vector<float> predictions = bench.Predict(batch);
    const data::HostSparseBatch& in = batch.sparse[0];
    for (size_t i = 0; i < batch.size; ++i) {
      double logit = 0;
      const size_t first = top == "item" ? 3 : 0, end = top == "item" ? 4 : 3;
      for (size_t k = in.offsets[i * 4 + first]; k < in.offsets[i * 4 + end]; ++k) {
        logit += good[in.rows[k] * 2] + good[in.rows[k] * 2 + 1] + kind[in.rows[k]];
      }
      EXPECT_NEAR(predictions[i], 1 / (1 + std::exp(-logit)), 1e-6) << top;
    }
    // A weight of a slot whose top is not read has no gradient.
    ReferenceModel reference = bench.Reference();
    bench.Train(batch, 1);
    const std::vector<double> after = bench.Weights(0);
    for (size_t i = 0; i < after.size(); ++i) {
      double* const w = &reference.tables[0][i];
      EXPECT_NEAR(*w - after[i], reference.Derivative(batch, 1, w), 1e-5) << top << " " << i;
    }
  }
}

TEST(FusedReshapeConcat, ChecksItsBottoms) {
  const auto error = [](const std::string& type, const std::string& tops,
                        const std::string& bottoms) {
    return BuildError({R"(layers.reshape1={"name":"x","type":")" + type + R"(","bottom":)" +
                       bottoms + R"(,"top":)" + tops + "}"});
  };
  EXPECT_THAT(error("FusedReshapeConcat", R"(["reshape1","b"])", R"(["emb","dense"])"),
              HasSubstr("bottom 'dense' is [b, 3]; it must have 3 dimensions"));
  EXPECT_THAT(error("FusedReshapeConcat", R"("reshape1")", R"("emb")"),
              HasSubstr("has 1 tops; must have 2"));
  EXPECT_THAT(error("FusedReshapeConcatGeneral", R"("reshape1")", R"("dense")"),
              HasSubstr("bottom 'dense' is [b, 3]; it must have 3 dimensions"));
}

}  // namespace
}  // namespace cistern::model
