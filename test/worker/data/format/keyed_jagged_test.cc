// The layout and the multi-hot transform of spec/002, with the example given there.
#include "worker/data/format/keyed_jagged.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/temp_folder.h"
#include "test/worker/data/scratch.h"

namespace cistern {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Two samples with one value per feature, as a reader produces them.
SampleBlock TwoSamples(const std::vector<Key>& first, const std::vector<Key>& second) {
  SampleBlock block;
  block.Reset(1);
  block.size = 2;
  for (const std::vector<Key>& keys : {first, second}) {
    for (Key key : keys) {
      block.sparse[0].keys.push_back(key);
      block.sparse[0].offsets.push_back(static_cast<uint32_t>(block.sparse[0].keys.size()));
    }
  }
  return block;
}

MultiHot ExampleTransform(MultiHotOptions options = {8, 3, MultiHotDistribution::kUniform, true}) {
  return *MultiHot::Create(options, {6, 7, 5, 9});
}

TEST(KeyedJagged, StoresValuesFeatureByFeature) {
  const KeyedJagged batch = MakeKeyedJagged(TwoSamples({1, 2, 3, 4}, {5, 6, 0, 8}));
  EXPECT_THAT(batch.keys, ElementsAre("cat_0", "cat_1", "cat_2", "cat_3"));
  EXPECT_EQ(batch.stride, 2u);
  EXPECT_THAT(batch.values, ElementsAre(1, 5, 2, 6, 3, 0, 4, 8));
  EXPECT_THAT(batch.lengths, ElementsAre(1, 1, 1, 1, 1, 1, 1, 1));
  EXPECT_THAT(batch.offsets, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(batch.length_per_key, ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(batch.offset_per_key, ElementsAre(0, 2, 4, 6, 8));
  const auto dict = batch.ToDict();
  EXPECT_EQ(dict.size(), 4u);
  EXPECT_THAT(dict.at("cat_3").values, ElementsAre(4, 8));
  EXPECT_THAT(dict.at("cat_3").lengths, ElementsAre(1, 1));
  EXPECT_THAT(dict.at("cat_3").offsets, ElementsAre(0, 1, 2));
}

TEST(KeyedJagged, KeepsTheOrderOfInputsAndOfSlotsWithAnyNumberOfKeys) {
  SampleBlock block;
  block.Reset(2);
  block.size = 2;
  block.sparse[0].keys = {1, 2, 3};
  block.sparse[0].offsets = {0, 2, 2, 2, 3};  // (1 2 | none), (none | 3)
  block.sparse[1].keys = {9, 8};
  block.sparse[1].offsets = {0, 1, 2};
  const KeyedJagged batch = MakeKeyedJagged(block);
  EXPECT_THAT(batch.keys, ElementsAre("cat_0", "cat_1", "cat_2"));
  EXPECT_THAT(batch.values, ElementsAre(1, 2, 3, 9, 8));
  EXPECT_THAT(batch.lengths, ElementsAre(2, 0, 0, 1, 1, 1));
  EXPECT_THAT(batch.offsets, ElementsAre(0, 2, 2, 2, 3, 4, 5));
  EXPECT_THAT(batch.length_per_key, ElementsAre(2, 1, 2));
  EXPECT_THAT(batch.ToDict().at("cat_1").offsets, ElementsAre(0, 0, 1));
}

// spec/002: B = 2, num_embeddings [6, 7, 5, 9], min_table_size 8, size 3: only feature 3 changes.
TEST(MultiHot, MatchesTheWorkedExample) {
  MultiHot transform = ExampleTransform();
  const auto batch = transform.Apply(MakeKeyedJagged(TwoSamples({1, 2, 3, 4}, {5, 6, 0, 8})));
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_THAT(batch->offsets, ElementsAre(0, 1, 2, 3, 4, 5, 6, 9, 12));
  EXPECT_THAT(batch->lengths, ElementsAre(1, 1, 1, 1, 1, 1, 3, 3));
  EXPECT_THAT(batch->length_per_key, ElementsAre(2, 2, 2, 6));
  EXPECT_THAT(std::vector<Key>(batch->values.begin(), batch->values.begin() + 6),
              ElementsAre(1, 5, 2, 6, 3, 0));
  EXPECT_EQ(batch->values[6], 4u);
  EXPECT_EQ(batch->values[9], 8u);
  for (size_t i = 6; i < 12; ++i) EXPECT_LT(batch->values[i], 9u);
  EXPECT_THAT(batch->ToDict().at("cat_3").offsets, ElementsAre(0, 3, 6));
}

TEST(MultiHot, AValueAlwaysBecomesTheSameRow) {
  MultiHot transform = ExampleTransform(), again = ExampleTransform();
  const auto one = *transform.Apply(MakeKeyedJagged(TwoSamples({0, 0, 0, 7}, {0, 0, 0, 7})));
  const auto other = *again.Apply(MakeKeyedJagged(TwoSamples({0, 0, 0, 1}, {0, 0, 0, 7})));
  EXPECT_EQ(std::vector<Key>(one.values.begin() + 6, one.values.begin() + 9),
            std::vector<Key>(one.values.begin() + 9, one.values.end()));
  EXPECT_EQ(std::vector<Key>(one.values.begin() + 9, one.values.end()),
            std::vector<Key>(other.values.begin() + 9, other.values.end()));
}

TEST(MultiHot, WeightsFollowTheirDistribution) {
  static constexpr uint64_t kRows = 1000;
  const auto low_share = [](MultiHotDistribution distribution) {
    MultiHot transform = *MultiHot::Create({0, 5, distribution, false}, {kRows});
    std::vector<Key> values;
    for (Key row = 0; row < kRows; ++row) transform.Append(0, row, &values);
    size_t low = 0, drawn = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_LT(values[i], kRows);
      if (i % 5 == 0) continue;  // the value itself
      ++drawn;
      low += values[i] < 10;
    }
    return static_cast<double>(low) / static_cast<double>(drawn);
  };
  EXPECT_NEAR(low_share(MultiHotDistribution::kUniform), 0.01, 0.006);
  // P(Lomax < 10) = 1 - 11^-0.25 = 0.451, plus the values that the modulus maps below 10.
  EXPECT_NEAR(low_share(MultiHotDistribution::kPareto), 0.455, 0.03);
}

TEST(MultiHot, CountsAndSavesFrequenciesBeforeAndAfter) {
  Scratch scratch;
  MultiHot transform = ExampleTransform();
  ASSERT_TRUE(transform.Apply(MakeKeyedJagged(TwoSamples({1, 2, 3, 4}, {1, 6, 0, 4}))).ok());
  EXPECT_EQ(transform.frequencies_before()[0].at(1), 2u);
  EXPECT_EQ(transform.frequencies_before()[3].at(4), 2u);
  uint64_t after = 0;
  for (const auto& [value, times] : transform.frequencies_after()[3]) after += times;
  EXPECT_EQ(after, 6u);
  ASSERT_TRUE(transform.SaveFrequencies(Disk(), scratch.Path("f.tsv")).ok());
  EXPECT_THAT(scratch.Read("f.tsv"),
              HasSubstr("0\tbefore\t1\t2\n0\tafter\t1\t2\n1\tbefore\t2\t1\n"));
  EXPECT_THAT(scratch.Read("f.tsv"), HasSubstr("3\tbefore\t4\t2\n"));
}

TEST(MultiHot, RefusesBatchesThatDoNotFit) {
  MultiHot transform = ExampleTransform();
  EXPECT_EQ(transform.Apply(MakeKeyedJagged(TwoSamples({1, 2, 3}, {1, 2, 3}))).status().code(),
            absl::StatusCode::kInvalidArgument);
  const absl::Status status =
      transform.Apply(MakeKeyedJagged(TwoSamples({1, 2, 3, 4}, {1, 2, 5, 4}))).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cat_2, sample 1: 5 is not below the 5"));
  EXPECT_FALSE(MultiHot::Create({8, 0, MultiHotDistribution::kUniform, false}, {9}).ok());
  EXPECT_FALSE(MultiHot::Create({8, 2, MultiHotDistribution::kUniform, false}, {0}).ok());
}

}  // namespace
}  // namespace cistern
