#include "test/worker/model/model_bench.h"
#include "test/worker/model/model_error.h"
#include "test/worker/model/model_texts.h"

namespace cistern::model {
namespace {

using ::testing::HasSubstr;

// Replaces the layers of the small model after the embedding 'emb', [b, 2, 4], by one.
std::string AttentionError(const std::string& bottoms, const std::string& more = "") {
  return BuildError({R"(layers.reshape1={"name":"x","type":"MultiHeadAttention","bottom":[)" +
                     bottoms + R"(],"top":"reshape1")" + more + "}"});
}

TEST(MultiHeadAttention, ShapesMustFit) {
  EXPECT_THAT(AttentionError(R"("emb","emb")"), HasSubstr("must have 3 to 4"));
  EXPECT_THAT(AttentionError(R"("emb","emb","dense")"),
              HasSubstr("bottom 'dense' is [b, 3]; it must have 3 dimensions"));
  EXPECT_THAT(AttentionError(R"("emb","emb","emb","emb")"),
              HasSubstr("bottoms are 'emb' [b, 2, 4], 'emb' [b, 2, 4], 'emb' [b, 2, 4], 'emb' "
                        "[b, 2, 4]; the mask must be [b, 1, 2, 2], a SequenceMask of these "
                        "lengths"));
  EXPECT_THAT(AttentionError(R"("emb","emb","emb")", R"(,"num_attention_heads":3)"),
              HasSubstr("num_attention_heads is 3 and bottom 'emb' is [b, 2, 4]: it must divide "
                        "the last dimension"));
}

TEST(SequenceMask, LengthsAreOneColumn) {
  EXPECT_THAT(BuildError({R"(layers.reshape1={"name":"x","type":"SequenceMask",
                              "bottom":["dense","dense"],"top":"reshape1"})"}),
              HasSubstr("bottom 'dense' is [b, 3]; it must be [b, 1], the length of a sample's "
                        "sequence: put a Slice before it"));
}

// Gradients of all rows, against the derivative of the loss in double.
void ExpectRowGradients(const std::string& text, size_t samples, size_t most_keys) {
  ModelBench bench(text, {}, 12);
  const data::HostBatch batch =
      MakeHostBatch(bench.config.data, samples, most_keys == 0 ? 0 : 12, most_keys, 8);
  ReferenceModel reference = bench.Reference();
  const double loss = reference.Loss(batch, 1);
  EXPECT_NEAR(bench.Train(batch, 1).loss, loss, 1e-6 * (1 + loss));
  for (size_t t = 0; t < bench.tables.size(); ++t) {
    const std::vector<double> table = bench.Weights(t);
    for (size_t i = 0; i < table.size(); ++i) {
      double* const w = &reference.tables[t][i];
      EXPECT_NEAR(*w - table[i], reference.Derivative(batch, 1, w), 1e-5) << t << " " << i;
    }
  }
}

TEST(MultiHeadAttention, GradientsOfABatchOfOne) {
  ExpectRowGradients(BstText(), 1, 3);
}

// No slot has a key: each vector is 0, and each share is the same.
TEST(MultiHeadAttention, GradientsOfEmptySequences) {
  ExpectRowGradients(BstText(), 5, 0);
}

TEST(Hstu, GradientsOfABatchOfOne) {
  ExpectRowGradients(HstuText(), 1, 3);
}

TEST(Hstu, GradientsOfEmptySequences) {
  ExpectRowGradients(HstuText(), 5, 0);
}

// A mask of zeros alone: what a normalization makes of zeros, which no other layer moves.
TEST(Hstu, ASequenceOfWhichAllIsMaskedIsBeta) {
  ModelBench bench(HstuText(), {}, 12);
  data::HostBatch batch = bench.batch(4, 1);
  for (float& x : batch.dense) x = 0;  // lengths are the bias of a layer, which is 0
  const std::vector<double> expected = bench.Reference().Predict(batch);
  const std::vector<float> predictions = bench.Predict(batch);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(std::isfinite(predictions[i]));
    EXPECT_NEAR(predictions[i], expected[i], 1e-6) << i;
  }
}

TEST(Hstu, ShapesMustFit) {
  const auto error = [](const std::string& bottoms, const std::string& more) {
    return BuildError({R"(layers.reshape1={"name":"x","type":"HSTU","bottom":[)" + bottoms +
                       R"(],"top":"reshape1")" + more + "}"});
  };
  EXPECT_THAT(error(R"("dense")", ""), HasSubstr("it must have 3 dimensions"));
  EXPECT_THAT(
      error(R"("emb")", R"(,"num_attention_heads":2)"),
      HasSubstr("num_attention_heads is 2 and bottom 'emb' is [b, 2, 4]: its last dimension "
                "holds U, V, Q and K, each with as many columns for every head, so it must "
                "be a multiple of 8"));
  EXPECT_THAT(error(R"("emb","emb")", ""),
              HasSubstr("bottom 'emb' is [b, 2, 4]; the mask must be [b, 1, 2, 2]"));
}

// Steps of fewer samples than the batch size, and predictions of more: the memory of both is
// enough.
TEST(MultiHeadAttention, PredictsMoreSamplesThanItTrainsOn) {
  ModelBench bench(BstText(), {"solver.batchsize=3", "solver.batchsize_eval=50"}, 12);
  bench.Train(bench.batch(3, 1), 1);
  const data::HostBatch batch = bench.batch(50, 2);
  const std::vector<double> expected = bench.Reference().Predict(batch);
  const std::vector<float> predictions = bench.Predict(batch);
  ASSERT_EQ(predictions.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(predictions[i], expected[i], 1e-6) << i;
}

}  // namespace
}  // namespace cistern::model
