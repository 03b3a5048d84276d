// Weights of keys in batches; the rest of the builder is tested by pass_source_test.cc.
#include "worker/data/source/batch_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cistern::data {
namespace {

using testing::ElementsAre;
using testing::FloatEq;

TEST(SharesOf, AreWeightsDividedByTheirSum) {
  EXPECT_THAT(SharesOf(std::vector<uint32_t>{0, 3, 3, 5}, std::vector<float>{1, 2, -1, 3, 1}),
              ElementsAre(0.5f, 1, -0.5f, 0.75f, 0.25f));
  EXPECT_TRUE(SharesOf(std::vector<uint32_t>{0}, {}).empty());
}

TEST(SharesOf, AreZeroWhereTheSumIs) {
  EXPECT_THAT(SharesOf(std::vector<uint32_t>{0, 2, 4}, std::vector<float>{2, -2, 0, 0}),
              ElementsAre(0, 0, 0, 0));
}

SampleBlock WeightedSamples() {
  SampleBlock block;
  block.Reset(1);
  block.size = 3;
  block.label = {0, 1, 2};
  block.sparse[0] = {{0, 2, 2, 3, 5, 6, 6}, {7, 7, 8, 7, 8, 9}, {1, 3, 5, 2, 2, 4}};
  return block;
}

TEST(SegmentBuilder, GivesEachOccurrenceItsPlace) {
  HostBatch batch = MakeHostBatch(WeightedSamples());
  HostSparseBatch& sparse = batch.sparse[0];
  sparse.rows = {1, 1, 0, 1, 0, 2};
  EXPECT_THAT(sparse.shares, ElementsAre(0.25f, 0.75f, 1, 0.5f, 0.5f, 1));
  SegmentBuilder().Build(&batch);
  EXPECT_THAT(sparse.segment_rows, ElementsAre(0, 1, 2));
  EXPECT_THAT(sparse.segment_offsets, ElementsAre(0, 2, 5, 6));
  EXPECT_THAT(sparse.segment_places, ElementsAre(2, 4, 0, 1, 3, 5));
  EXPECT_THAT(sparse.segment_outputs, ElementsAre(2, 3, 0, 0, 3, 4));
  sparse.weights.clear();
  SegmentBuilder().Build(&batch);
  EXPECT_TRUE(sparse.segment_places.empty());
  EXPECT_THAT(sparse.segment_outputs, ElementsAre(2, 3, 0, 0, 3, 4));
}

TEST(ShuffleSamples, MovesWeightsWithTheirKeys) {
  std::vector<HostBatch> batches;
  batches.push_back(MakeHostBatch(WeightedSamples()));
  HostSparseBatch& sparse = batches[0].sparse[0];
  sparse.keys = WeightedSamples().sparse[0].keys;
  for (uint64_t stream = 0; stream < 5; ++stream) {
    ShuffleSamples(3, stream, &batches);
    const HostSparseBatch& moved = batches[0].sparse[0];
    ASSERT_EQ(moved.keys.size(), 6u);
    const SampleBlock before = WeightedSamples();
    size_t at = 0;
    for (const float label : batches[0].label) {
      const auto sample = static_cast<size_t>(label);
      const uint32_t* const offsets = before.sparse[0].offsets.data() + 2 * sample;
      for (uint32_t k = offsets[0]; k < offsets[2]; ++k, ++at) {
        EXPECT_EQ(moved.keys[at], before.sparse[0].keys[k]);
        EXPECT_EQ(moved.weights[at], before.sparse[0].weights[k]);
      }
    }
    EXPECT_EQ(moved.shares, SharesOf(moved.offsets, moved.weights));
  }
}

}  // namespace
}  // namespace cistern::data
