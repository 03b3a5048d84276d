#include "worker/config/model_config.h"

#include "test/model/config_parsing.h"

namespace cistern {
namespace {

using ::testing::HasSubstr;

TEST(DataConfig, OtherFormatsAreRefused) {
  EXPECT_THAT(ErrorOf({"layers.data.format=Raw"}),
              HasSubstr("layers[0].format: Raw is not a format of this release"));
}

TEST(DataConfig, CheckOfDataIsOptional) {
  const absl::StatusOr<ModelConfig> config = Parse({}, Replaced("\"check\": \"Sum\",", ""));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->data.check, NormCheck::kNone);
}

TEST(DataConfig, MaxNnzBoundsASampleToo) {
  EXPECT_EQ(ParseOrDie({"layers.data.sparse.0.max_nnz=1"}).data.sparse[0].max_feature_num, 2u);
}

TEST(DataConfig, DenseFeaturesAreOptional) {
  const std::string dense = R"("dense": {"top": "dense", "dense_dim": 3},)";
  const ModelConfig config = ParseOrDie({}, Replaced(dense, ""));
  EXPECT_EQ(config.data.dense_dim, 0u);
  EXPECT_EQ(config.data.dense_top, "");
}

TEST(DataConfig, AnInputThatNobodyReadsIsNoted) {
  const ModelConfig config = ParseOrDie(
      {R"(layers.data.sparse=[{"top":"data1","slot_num":2},{"top":"data2","slot_num":1}])"});
  EXPECT_THAT(config.notes, ::testing::Contains("layers[0].sparse[1]: no embedding reads 'data2'"));
  EXPECT_EQ(ShapeOf(config.data), (SampleShape{1, 3, {2, 1}, {0, 0}}));
}

}  // namespace
}  // namespace cistern
