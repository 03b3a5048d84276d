#include "worker/model/config/model_config.h"

#include "test/worker/model/config/config_parsing.h"

namespace cistern::model {
namespace {

using ::testing::HasSubstr;

TEST(DataConfig, ReadsTheKeysOfTheRawFormat) {
  const ModelConfig config =
      ParseOrDie({"layers.data.format=Raw", "layers.data.check=None",
                  "layers.data.num_samples=4195155968", "layers.data.eval_num_samples=7",
                  "layers.data.float_label_dense=true", "layers.data.slot_size_array=[10, 20]"});
  EXPECT_EQ(config.data.format, data::DataFormat::kRaw);
  EXPECT_EQ(config.data.num_samples, 4195155968u);
  EXPECT_EQ(config.data.eval_num_samples, 7u);
  EXPECT_TRUE(config.data.float_label_dense);
  EXPECT_THAT(config.data.slot_sizes, ::testing::ElementsAre(10, 20));
  EXPECT_THAT(config.notes, ::testing::Not(::testing::Contains(HasSubstr("layers[0]"))));
}

TEST(DataConfig, RawRejectsBoundsThatItsFilesCannotMeet) {
  const std::vector<std::string> raw = {"layers.data.format=Raw", "layers.data.check=None"};
  EXPECT_THAT(ErrorOf({raw[0], raw[1], "layers.data.slot_size_array=[10]"}),
              HasSubstr("slot_size_array has 1 sizes, but the sparse inputs have 2 slots"));
  EXPECT_THAT(ErrorOf({raw[0], raw[1], "layers.data.sparse.0.max_feature_num_per_sample=1"}),
              HasSubstr("sparse[0].max_feature_num_per_sample: is 1, but a sample of a Raw file"));
  EXPECT_THAT(ErrorOf({raw[0], raw[1], "layers.data.num_samples=0"}), HasSubstr("num_samples"));
}

TEST(DataConfig, ParquetUsesSlotSizesAndIgnoresTheNumberOfSamples) {
  const ModelConfig config =
      ParseOrDie({"layers.data.format=Parquet", "layers.data.check=None",
                  "layers.data.num_samples=5", "layers.data.slot_size_array=[10, 20]"});
  EXPECT_EQ(config.data.format, data::DataFormat::kParquet);
  EXPECT_EQ(config.data.num_samples, 0u);
  EXPECT_THAT(config.data.slot_sizes, ::testing::ElementsAre(10, 20));
  EXPECT_THAT(
      config.notes,
      ::testing::Contains("layers[0].num_samples: ignored: the format Parquet does not use it"));
}

TEST(DataConfig, NotesAChecksumSettingOfFormatsWithoutChecksums) {
  for (const std::string format : {"Raw", "Parquet"}) {
    const ModelConfig config =
        ParseOrDie({"layers.data.format=" + format, "layers.data.check=Sum"});
    EXPECT_EQ(config.data.check, data::NormCheck::kNone);
    EXPECT_THAT(config.notes, ::testing::Contains("layers[0].check: ignored: " + format +
                                                  " files carry no checksums"));
  }
  EXPECT_EQ(ParseOrDie({"layers.data.check=Sum"}).data.check, data::NormCheck::kSum);
}

TEST(DataConfig, NotesKeysOfOtherFormats) {
  const ModelConfig config = ParseOrDie({"layers.data.num_samples=5"});
  EXPECT_THAT(config.notes, ::testing::Contains(
                                "layers[0].num_samples: ignored: the format Norm does not use it"));
  EXPECT_EQ(config.data.num_samples, 0u);
}

TEST(DataConfig, TarTakesColumnsThatMatchTheShape) {
  const ModelConfig config =
      ParseOrDie({"layers.data.format=Tar", "layers.data.check=None", "cistern.columns.label=click",
                  "cistern.columns.slots=[\"C1\", \"C2\"]"});
  const data::DataSetOptions options = DataSetOf(config, "a.tar");
  EXPECT_EQ(options.format, data::DataFormat::kTar);
  EXPECT_THAT(options.columns.label, ::testing::ElementsAre("click"));
  EXPECT_THAT(options.columns.slots, ::testing::ElementsAre("C1", "C2"));
  EXPECT_TRUE(options.columns.dense.empty());
  EXPECT_THAT(ErrorOf({"layers.data.format=Tar", "cistern.columns.slots=[\"C1\"]"}),
              HasSubstr("cistern.columns.slots: names 1 fields, but layers[0] has 2 slots"));
  EXPECT_THAT(ParseOrDie({"cistern.columns.label=click"}).notes,
              ::testing::Contains("cistern.columns: ignored: the format Norm does not use it"));
}

TEST(DataConfig, CacheEvalDataIsABooleanOrACount) {
  const auto cached = [](const std::string& value) {
    return ParseOrDie({"layers.data.cache_eval_data=" + value}).data.cache_eval_batches;
  };
  EXPECT_EQ(cached("true"), UINT64_MAX);
  EXPECT_EQ(cached("false"), 0u);
  EXPECT_EQ(cached("70"), 70u);
  EXPECT_EQ(ParseOrDie({}).data.cache_eval_batches, 0u);
  EXPECT_THAT(ErrorOf({"layers.data.cache_eval_data=some"}),
              HasSubstr("cache_eval_data: expected true, false or integer >= 0"));
}

TEST(DataConfig, CheckIsOptional) {
  const absl::StatusOr<ModelConfig> config = Parse({}, Replaced("\"check\": \"Sum\",", ""));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->data.check, data::NormCheck::kNone);
}

TEST(DataConfig, MaxNnzAlsoBoundsTheKeysOfASample) {
  EXPECT_EQ(ParseOrDie({"layers.data.sparse.0.max_nnz=1"}).data.sparse[0].max_feature_num, 2u);
}

TEST(DataConfig, DenseFeaturesAreOptional) {
  const std::string dense = R"("dense": {"top": "dense", "dense_dim": 3},)";
  const ModelConfig config = ParseOrDie({}, Replaced(dense, ""));
  EXPECT_EQ(config.data.dense_dim, 0u);
  EXPECT_EQ(config.data.dense_top, "");
}

TEST(DataConfig, NotesAnInputThatNoEmbeddingReads) {
  const ModelConfig config = ParseOrDie(
      {R"(layers.data.sparse=[{"top":"data1","slot_num":2},{"top":"data2","slot_num":1}])"});
  EXPECT_THAT(config.notes, ::testing::Contains("layers[0].sparse[1]: no embedding reads 'data2'"));
  EXPECT_EQ(ShapeOf(config.data), (data::SampleShape{1, 3, {2, 1}, {0, 0}}));
}

TEST(DataConfig, TheWeightOfASampleIsOneMoreLabelOfTheData) {
  EXPECT_FALSE(ShapeOf(ParseOrDie().data).weighted);
  const ModelConfig config = ParseOrDie({"cistern.sample_weights=true"});
  EXPECT_EQ(config.data.label_dim, 1u);
  EXPECT_EQ(ShapeOf(config.data), (data::SampleShape{2, 3, {2}, {30}, true}));
  EXPECT_EQ(DataSetOf(config, "data").shape, ShapeOf(config.data));
  const std::vector<std::string> tar = {"layers.data.format=Tar", "layers.data.check=None",
                                        "cistern.sample_weights=true"};
  std::vector<std::string> named = tar, unnamed = tar;
  named.push_back("cistern.columns.label=[\"click\", \"w\"]");
  EXPECT_THAT(DataSetOf(ParseOrDie(named), "data").columns.label,
              ::testing::ElementsAre("click", "w"));
  unnamed.push_back("cistern.columns.label=click");
  EXPECT_THAT(ErrorOf(unnamed),
              HasSubstr("names 1 fields, but layers[0] has 2 labels, the weight"));
}

TEST(DataConfig, KeysOfNamedInputsHaveWeights) {
  EXPECT_TRUE(ShapeOf(ParseOrDie().data).key_weights.empty());
  const std::string inputs =
      R"(layers.data.sparse=[{"top":"data1","slot_num":2},{"top":"data2","slot_num":1}])";
  const ModelConfig config = ParseOrDie({inputs, R"(cistern.key_weights=["data2"])"});
  EXPECT_EQ(ShapeOf(config.data), (data::SampleShape{1, 3, {2, 1}, {0, 0}, false, {false, true}}));
  EXPECT_THAT(ErrorOf({"cistern.key_weights=data9"}),
              HasSubstr("cistern.key_weights[0]: layers[0].sparse has no top 'data9'"));
  const std::vector<std::string> tar = {inputs, R"(cistern.key_weights=["data1"])",
                                        "layers.data.format=Tar", "layers.data.check=None"};
  std::vector<std::string> named = tar, unnamed = tar;
  named.push_back(R"(cistern.columns.weights=["w1", "w2"])");
  EXPECT_THAT(DataSetOf(ParseOrDie(named), "data").columns.weights,
              ::testing::ElementsAre("w1", "w2"));
  unnamed.push_back(R"(cistern.columns.weights=["w1"])");
  EXPECT_THAT(ErrorOf(unnamed), HasSubstr("cistern.columns.weights: names 1 fields, but layers[0] "
                                          "has 2 slots whose keys have weights"));
}

TEST(DataConfig, SampledNegativesAreForOneLabel) {
  EXPECT_EQ(ParseOrDie({"cistern.negative_rate=0.25"}).cistern.negative_rate, 0.25);
  EXPECT_THAT(ErrorOf({"cistern.negative_rate=0.25", "layers.data.label.label_dim=2"}),
              HasSubstr("cistern.negative_rate: is for models of one label, and layers[0] has 2"));
  EXPECT_THAT(ErrorOf({"cistern.eval_negative_rate=0.25", "layers.data.label.label_dim=2"}),
              HasSubstr("cistern.eval_negative_rate: is for models of one label"));
  for (const char* const bad : {"0", "1.5", "-1"}) {
    for (const char* const key : {"cistern.negative_rate", "cistern.eval_negative_rate"}) {
      EXPECT_THAT(ErrorOf({absl::StrCat(key, "=", bad)}), HasSubstr(key));
    }
  }
  EXPECT_THAT(ErrorOf({"cistern.positive_weight=0"}), HasSubstr("positive_weight"));
}

}  // namespace
}  // namespace cistern::model
