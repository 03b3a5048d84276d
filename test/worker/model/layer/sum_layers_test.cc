#include "test/worker/model/model_bench.h"
#include "test/worker/model/model_error.h"
#include "test/worker/model/model_texts.h"

namespace cistern::model {
namespace {

using ::testing::HasSubstr;

TEST(Add, ShapesMustAgree) {
  EXPECT_EQ(BuildError({R"(layers.relu1={"name":"x","type":"Add","bottom":["fc1","dense"],
                            "top":"relu1"})"}),
            "model.json: layer 'x' (layers[5], Add): bottoms 'fc1' [b, 5] and 'dense' [b, 3] have "
            "different shapes");
  EXPECT_THAT(BuildError({InsteadOfRelu("Add")}), HasSubstr("has 1 bottoms; must have 2 or more"));
}

TEST(DotProduct, ShapesMustAgree) {
  EXPECT_EQ(BuildError({R"(layers.relu1={"name":"x","type":"DotProduct","bottom":["fc1","dense"],
                            "top":"relu1"})"}),
            "model.json: layer 'x' (layers[5], DotProduct): bottoms 'fc1' [b, 5] and 'dense' "
            "[b, 3] have different shapes");
}

TEST(ElementwiseMultiply, GivesTheBitsOfDotProduct) {
  std::string other = AttentionText();
  other.replace(other.find("ElementwiseMultiply"), 19, "DotProduct");
  ModelBench one(AttentionText(), {}, 12), two(other, {}, 12);
  const data::HostBatch batch = one.batch(16, 1);
  EXPECT_EQ(one.Train(batch, 1).loss, two.Train(batch, 1).loss);
  EXPECT_EQ(one.Dense(0), two.Dense(0));
  EXPECT_EQ(one.Weights(0), two.Weights(0));
}

TEST(Sub, NeedsTwoTensorsOfOneShape) {
  EXPECT_THAT(BuildError({R"(layers.relu1={"name":"x","type":"Sub","bottom":["fc1","dense"],
                              "top":"relu1"})"}),
              HasSubstr("bottoms 'fc1' [b, 5] and 'dense' [b, 3] have different shapes"));
  EXPECT_THAT(BuildError({R"(layers.relu1={"name":"x","type":"Sub","bottom":["fc1","fc1","fc1"],
                              "top":"relu1"})"}),
              HasSubstr("has 3 bottoms; must have 2"));
}

TEST(ProductLogit, NeedsTwoTensorsOfOneShape) {
  EXPECT_THAT(BuildError({R"(layers.relu1={"name":"x","type":"ProductLogit",
                              "bottom":["fc1","dense"],"top":"relu1"})"}),
              HasSubstr("bottoms 'fc1' [b, 5] and 'dense' [b, 3] have different shapes"));
  EXPECT_THAT(BuildError({InsteadOfRelu("ProductLogit")}), HasSubstr("has 1 bottoms; must have 2"));
}

TEST(ReduceMean, RejectsAnAxisOutsideTheBottomOrOverTheBatch) {
  EXPECT_THAT(BuildError({InsteadOfRelu("ReduceMean", R"("axis":2)")}),
              HasSubstr("axis is 2 and bottom 'fc1' is [b, 5]: the last axis is 1"));
  EXPECT_THAT(BuildError({InsteadOfRelu("ReduceMean", R"("axis":0)")}),
              HasSubstr("a mean over the samples of a batch leaves no logit"));
}

TEST(ReduceSum, RejectsAnAxisOutsideTheBottomOrOverTheBatch) {
  EXPECT_THAT(BuildError({InsteadOfRelu("ReduceSum", R"("axis":2)")}),
              HasSubstr("axis is 2 and bottom 'fc1' is [b, 5]: the last axis is 1"));
  EXPECT_THAT(BuildError({InsteadOfRelu("ReduceSum", R"("axis":0)")}),
              HasSubstr("a sum over the samples of a batch leaves no logit"));
}

// [b, S, V] summed over S and then over V is the sum of all weights of a sample.
TEST(ReduceSum, SumsOverAnyDimension) {
  const std::string text =
      WithSgd(OneSparse(), Embedding("emb", "data1", 3, "0") + "," +
                               Simple("ReduceSum", "emb", "slots", R"("axis": 1)") + "," +
                               Simple("ReduceSum", "slots", "all", R"("axis": 2)") + "," +
                               Simple("Reshape", "all", "logit"));
  ModelBench bench(text, {}, 10);
  const data::HostBatch batch = bench.batch(7, 2);
  const std::vector<float> predictions = bench.Predict(batch);
  const std::vector<double> table = bench.Weights(0);
  for (size_t i = 0; i < batch.size; ++i) {
    double logit = 0;
    const std::vector<uint32_t>& offsets = batch.sparse[0].offsets;
    for (size_t k = offsets[i * 4]; k < offsets[i * 4 + 4]; ++k) {
      for (size_t e = 0; e < 3; ++e) logit += table[batch.sparse[0].rows[k] * 3 + e];
    }
    EXPECT_NEAR(predictions[i], 1 / (1 + std::exp(-logit)), 1e-6);
  }
}

}  // namespace
}  // namespace cistern::model
