#include "test/worker/model/model_bench.h"
#include "test/worker/model/model_error.h"
#include "test/worker/model/model_texts.h"
#include "worker/model/layer/layer_list.h"

namespace cistern::model {
namespace {

using ::testing::HasSubstr;

TEST(Reshape, RejectsShapesThatDoNotFit) {
  EXPECT_EQ(
      BuildError({"layers.reshape1.leading_dim=6"}),
      "model.json: layer 'reshape1' (layers[2], Reshape): leading_dim is 6 and bottom 'emb' is "
      "[b, 2, 4]: it must be a multiple of the last dimension");
  EXPECT_THAT(BuildError({"layers.reshape1.leading_dim=12"}),
              HasSubstr("it must divide the 8 elements of a sample"));
  EXPECT_THAT(
      BuildError({R"(layers.reshape1={"name":"reshape1","type":"Reshape","bottom":"emb",
                              "top":"reshape1","selected":[2]})"}),
      HasSubstr("selected contains slot 2, but bottom 'emb' is [b, 2, 4], with slots 0 to 1"));
}

TEST(Reshape, TimeStepMustFitAndNeedsLeadingDim) {
  EXPECT_THAT(BuildError({"layers.reshape1.time_step=3", "layers.reshape1.leading_dim=2"}),
              HasSubstr("time_step is 3, leading_dim is 2 and bottom 'emb' is [b, 2, 4]: their "
                        "product must divide the 8 elements of a sample"));
  const absl::Status alone =
      ParseModelConfig(SmallModelText(), "m",
                       {R"(layers.reshape1={"name":"reshape1","type":"Reshape","bottom":"emb",
                            "top":"reshape1","time_step":2})"},
                       LayerGrammars())
          .status();
  EXPECT_THAT(std::string(alone.message()), HasSubstr("leading_dim: missing; time_step needs it"));
}

TEST(Concat, RowsMustAgree) {
  EXPECT_EQ(
      BuildError({"layers.reshape1.leading_dim=4"}),
      "model.json: layer 'concat1' (layers[3], Concat): bottoms 'reshape1' [2b, 4] and 'dense' "
      "[b, 3] differ in dimension 0");
  const std::string joined = R"(layers.concat1={"name":"x","type":"Concat",
                                 "bottom":["emb","reshape1"],"top":"concat1","axis":2})";
  EXPECT_THAT(BuildError({joined}), HasSubstr("bottoms 'emb' [b, 2, 4] and 'reshape1' [b, 8] "
                                              "differ in another dimension than axis 2"));
  EXPECT_THAT(BuildError({"layers.concat1.axis=2"}),
              HasSubstr("axis is 2 and bottom 'reshape1' is [b, 8]: the last axis is 1"));
}

TEST(Select, PositionsMustBeWithinTheDimension) {
  EXPECT_THAT(BuildError({InsteadOfRelu("Select", R"("dim":1,"index":[4,5])")}),
              HasSubstr("index contains position 5, but bottom 'fc1' is [b, 5], with positions 0 "
                        "to 4"));
  EXPECT_THAT(BuildError({InsteadOfRelu("Select", R"("dim":2,"index":[0])")}),
              HasSubstr("dim is 2 and bottom 'fc1' is [b, 5]: the last dimension is 1"));
  EXPECT_THAT(std::string(ParseModelConfig(SmallModelText(), "m",
                                           {InsteadOfRelu("Select", R"("dim":1,"index":[])")},
                                           LayerGrammars())
                              .status()
                              .message()),
              HasSubstr("index: lists no position"));
}

TEST(Gather, TakesRowsOfASample) {
  EXPECT_THAT(BuildError({InsteadOfRelu("Gather", R"("indices":[0,1])")}),
              HasSubstr("indices contains row 1, but bottom 'fc1' is [b, 5], with rows 0 to 0"));
}

TEST(Slice, RangesMustBeWithinTheBottom) {
  EXPECT_THAT(BuildError({InsteadOfRelu("Slice", R"("ranges":[[2,6]])")}),
              HasSubstr("range [2, 6) exceeds bottom 'fc1', which is [b, 5]"));
  EXPECT_THAT(BuildError({InsteadOfRelu("Slice", R"("ranges":[[0,1],[1,2]])")}),
              HasSubstr("has 2 ranges but 1 tops"));
}

// The logit is the sum of the weights in the selected slots.
TEST(Reshape, GathersSelectedSlots) {
  const std::string text =
      WithSgd(OneSparse(), Embedding("emb", "data1", 2, "0") + "," +
                               Simple("Reshape", "emb", "picked", R"("selected": [3, 1, 1])") +
                               "," + Simple("ReduceSum", "picked", "logit", R"("axis": 1)"));
  ModelBench bench(text, {}, 10);
  const data::HostBatch batch = bench.batch(6, 1);
  const std::vector<float> predictions = bench.Predict(batch);
  const std::vector<double> table = bench.Weights(0);
  std::vector<double> gradient(table.size());  // of the loss by each weight
  for (size_t sample = 0; sample < batch.size; ++sample) {
    double logit = 0;
    for (size_t slot : {3, 1, 1}) {
      const size_t o = sample * 4 + slot;
      for (size_t k = batch.sparse[0].offsets[o]; k < batch.sparse[0].offsets[o + 1]; ++k) {
        const Row row = batch.sparse[0].rows[k];
        logit += table[row * 2] + table[row * 2 + 1];
      }
    }
    const double p = 1 / (1 + std::exp(-logit));
    EXPECT_NEAR(predictions[sample], p, 1e-6);
    for (size_t slot : {3, 1, 1}) {
      const size_t o = sample * 4 + slot;
      for (size_t k = batch.sparse[0].offsets[o]; k < batch.sparse[0].offsets[o + 1]; ++k) {
        for (size_t e = 0; e < 2; ++e) {
          gradient[batch.sparse[0].rows[k] * 2 + e] += (p - batch.label[sample]) / 6;
        }
      }
    }
  }
  bench.Train(batch, 1);
  const std::vector<double> after = bench.Weights(0);
  for (size_t i = 0; i < after.size(); ++i) EXPECT_NEAR(table[i] - after[i], gradient[i], 1e-6);
}

// HugeCTR's criteo sample concatenates a dense input without columns.
TEST(Concat, AcceptsADenseInputOfWidthZero) {
  ModelBench bench(SmallModelText(), {"layers.data.dense.dense_dim=0"}, 5);
  ASSERT_NE(bench.model, nullptr);
  const data::HostBatch batch = bench.batch(8, 1);
  EXPECT_GT(bench.Train(batch, 1).loss, 0);
  EXPECT_EQ(bench.Predict(batch).size(), 8u);
}

}  // namespace
}  // namespace cistern::model
