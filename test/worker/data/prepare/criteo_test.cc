// DLRM's preparation of Criteo's logs, on days of a few lines.
#include "worker/data/prepare/criteo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "test/worker/data/prepare/criteo_fixture.h"
#include "worker/data/prepare/criteo_ids.h"
#include "worker/data/prepare/work_folder.h"

namespace cistern::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Criteo, IdsAreContiguousFrom2ByFirstOccurrenceOverAllDays) {
  Scratch scratch;
  const CriteoOptions options = ThreeDays(scratch);
  const auto summary = PrepareCriteo(options, nullptr);
  ASSERT_TRUE(summary.ok()) << summary.status();
  // Column 0: ff, 0 (empty), 1, then 2 in the test day. Column 1: a, b, c. Others: 0 alone.
  EXPECT_EQ(summary->slot_sizes[0], 6u);
  EXPECT_EQ(summary->slot_sizes[1], 5u);
  EXPECT_EQ(summary->slot_sizes[25], 3u);
  EXPECT_EQ(scratch.Read("out/ids/cat_0.txt"), "000000ff\n00000000\n00000001\n00000002\n");
  EXPECT_THAT(scratch.Read("out/slot_sizes.json"), HasSubstr("[6, 5, 3, 3"));
  const SampleBlock train = ReadSet(options, *summary, summary->train_source);
  ASSERT_EQ(train.size, 4u);
  std::vector<Key> first, second;
  for (size_t i = 0; i < 4; ++i) {
    first.push_back(train.sparse[0].keys[26 * i]);
    second.push_back(train.sparse[0].keys[26 * i + 1]);
  }
  EXPECT_THAT(first, ElementsAre(2, 3, 4, 2));
  EXPECT_THAT(second, ElementsAre(6 + 2, 6 + 2, 6 + 3, 6 + 2));
}

TEST(Criteo, DenseFeaturesAreLogarithmsAndTheLastDayIsHeldOut) {
  Scratch scratch;
  const CriteoOptions options = ThreeDays(scratch);
  const auto summary = PrepareCriteo(options, nullptr);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->train_samples, 4u);
  EXPECT_EQ(summary->train_positives, 2u);
  EXPECT_EQ(summary->test_samples, 2u);
  EXPECT_EQ(summary->test_positives, 1u);
  EXPECT_EQ(summary->clipped, 1u);
  const SampleBlock train = ReadSet(options, *summary, summary->train_source);
  EXPECT_FLOAT_EQ(train.dense[0], std::log(3.0f));
  EXPECT_FLOAT_EQ(train.dense[13], std::log(3.0f));  // empty
  EXPECT_FLOAT_EQ(train.dense[26], 0);               // -2
  EXPECT_FLOAT_EQ(train.dense[39], std::log(8.0f));
  const SampleBlock test = ReadSet(options, *summary, summary->test_source);
  EXPECT_THAT(test.label, ElementsAre(1, 0));
  EXPECT_FLOAT_EQ(test.dense[0], 0);  // -7 is clipped to -2
  EXPECT_FLOAT_EQ(test.dense[13], std::log(6.0f));
  EXPECT_FALSE(std::filesystem::exists(scratch.Path("out/rows")));
}

TEST(Criteo, AllFormatsHoldTheSameSamples) {
  Scratch scratch;
  CriteoOptions options = ThreeDays(scratch);
  const auto norm_summary = PrepareCriteo(options, nullptr);
  ASSERT_TRUE(norm_summary.ok()) << norm_summary.status();
  const SampleBlock norm = ReadSet(options, *norm_summary, norm_summary->train_source);
  options.format = DataFormat::kRaw;
  options.overwrite = true;
  const auto raw_summary = PrepareCriteo(options, nullptr);
  ASSERT_TRUE(raw_summary.ok()) << raw_summary.status();
  const SampleBlock raw = ReadSet(options, *raw_summary, raw_summary->train_source);
  EXPECT_EQ(raw.label, norm.label);
  EXPECT_EQ(raw.dense, norm.dense);
  EXPECT_EQ(raw.sparse[0].keys, norm.sparse[0].keys);
}

TEST(Criteo, TheTrainingDataIsAPermutationOfTheDays) {
  Scratch scratch;
  std::string day;
  for (int i = 0; i < 20000; ++i) day += Line(i % 2, absl::StrCat(i), "1", "2");
  CriteoOptions options = Options(scratch, {day, Line(0, "0", "1", "2")});
  options.shuffle = true;
  options.memory_mb = 1;  // several parts
  const auto summary = PrepareCriteo(options, nullptr);
  ASSERT_TRUE(summary.ok()) << summary.status();
  const SampleBlock train = ReadSet(options, *summary, summary->train_source);
  ASSERT_EQ(train.size, 20000u);
  std::vector<int> numbers;
  for (size_t i = 0; i < train.size; ++i) {
    numbers.push_back(static_cast<int>(std::lround(std::exp(train.dense[13 * i]) - 3)));
    EXPECT_EQ(train.label[i], numbers.back() % 2);
  }
  EXPECT_FALSE(std::is_sorted(numbers.begin(), numbers.end()));
  // In a shuffle, about half of the first half comes from the first half.
  const auto early = std::count_if(numbers.begin(), numbers.begin() + 10000,
                                   [](int number) { return number < 10000; });
  EXPECT_NEAR(static_cast<double>(early), 5000, 250);
  std::sort(numbers.begin(), numbers.end());
  for (int i = 0; i < 20000; ++i) ASSERT_EQ(numbers[i], i);
  const std::string bytes = scratch.Read("out/train/part-00000.norm");
  options.overwrite = true;
  ASSERT_TRUE(PrepareCriteo(options, nullptr).ok());
  EXPECT_TRUE(scratch.Read("out/train/part-00000.norm") == bytes);
}

TEST(Criteo, LargeColumnsBecomeMultiHot) {
  Scratch scratch;
  CriteoOptions options = ThreeDays(scratch);
  options.multi_hot = {5, 3, MultiHotDistribution::kUniform, true};
  const auto summary = PrepareCriteo(options, nullptr);
  ASSERT_TRUE(summary.ok()) << summary.status();
  const SampleBlock train = ReadSet(options, *summary, summary->train_source);
  EXPECT_THAT(
      std::vector<uint32_t>(train.sparse[0].offsets.begin(), train.sparse[0].offsets.begin() + 4),
      ElementsAre(0, 3, 6, 7));
  EXPECT_EQ(train.sparse[0].keys[0], 2u);
  for (size_t k : {3, 4, 5}) {
    EXPECT_GE(train.sparse[0].keys[k], 6u);
    EXPECT_LT(train.sparse[0].keys[k], 11u);
  }
  EXPECT_THAT(scratch.Read("out/frequencies.tsv"), HasSubstr("0\tbefore\t2\t3\n"));
  options.format = DataFormat::kRaw;
  options.out = scratch.Path("raw");
  EXPECT_THAT(ErrorOf(options, absl::StatusCode::kInvalidArgument), HasSubstr("needs Norm"));
}

// The keys of one slot, by sample.
std::vector<Key> ColumnOf(const SampleBlock& block, size_t slots, size_t slot) {
  std::vector<Key> keys;
  for (size_t i = 0; i < block.size; ++i) keys.push_back(block.sparse[0].keys[slots * i + slot]);
  return keys;
}

TEST(Criteo, RareValuesShareAnId) {
  Scratch scratch;
  CriteoOptions options = ThreeDays(scratch);
  options.min_count = 2;
  options.format = DataFormat::kNorm;
  const auto summary = PrepareCriteo(options, nullptr);
  ASSERT_TRUE(summary.ok()) << summary.status();
  // Column 0: ff three times; 0, 1 and 2 once. Column 1: a three times, b twice, c once.
  EXPECT_EQ(summary->slot_sizes[0], 3u);
  EXPECT_EQ(summary->slot_sizes[1], 4u);
  EXPECT_EQ(scratch.Read("out/ids/cat_0.txt"), "000000ff\n");
  EXPECT_EQ(scratch.Read("out/ids/cat_1.txt"), "0000000a\n0000000b\n");
  const SampleBlock train = ReadSet(options, *summary, summary->train_source);
  EXPECT_THAT(ColumnOf(train, 26, 0), ElementsAre(2, 1, 1, 2));
  const SampleBlock test = ReadSet(options, *summary, summary->test_source);
  EXPECT_THAT(ColumnOf(test, 26, 1), ElementsAre(3 + 1, 3 + 3));
}

TEST(Criteo, DenseNumbersHaveThreeTransforms) {
  Scratch scratch;
  CriteoOptions options = ThreeDays(scratch);
  options.dense = CriteoDense::kLog1;
  auto summary = PrepareCriteo(options, nullptr);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->clipped, 2u);  // -2 and -7
  SampleBlock train = ReadSet(options, *summary, summary->train_source);
  EXPECT_FLOAT_EQ(train.dense[0], 0);
  EXPECT_FLOAT_EQ(train.dense[26], 0);
  EXPECT_FLOAT_EQ(train.dense[39], std::log(6.0f));
  EXPECT_FALSE(std::filesystem::exists(scratch.Path("out/dense_ranges.tsv")));

  options.dense = CriteoDense::kMinMax;
  options.overwrite = true;
  summary = PrepareCriteo(options, nullptr);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->clipped, 1u);  // the -7 of the last day; training goes from -2 to 5
  train = ReadSet(options, *summary, summary->train_source);
  EXPECT_FLOAT_EQ(train.dense[0], 2.0f / 7);
  EXPECT_FLOAT_EQ(train.dense[26], 0);
  EXPECT_FLOAT_EQ(train.dense[39], 1);
  EXPECT_FLOAT_EQ(train.dense[1], 0);  // a constant column
  const SampleBlock test = ReadSet(options, *summary, summary->test_source);
  EXPECT_FLOAT_EQ(test.dense[0], 0);
  EXPECT_FLOAT_EQ(test.dense[13], 5.0f / 7);
  EXPECT_THAT(scratch.Read("out/dense_ranges.tsv"), HasSubstr("I1\t-2\t5\nI2\t0\t0\n"));
}

TEST(Criteo, RangesHoldTheLargestNumbers) {
  Scratch scratch;
  const std::string most = "9223372036854775807", least = "-9223372036854775808";
  CriteoOptions options = Options(
      scratch, {Line(1, most, "a", "b") + Line(0, least, "a", "b"), Line(1, "0", "a", "b")});
  options.dense = CriteoDense::kMinMax;
  const auto summary = PrepareCriteo(options, nullptr);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_THAT(scratch.Read("out/dense_ranges.tsv"),
              HasSubstr("I1\t-9223372036854775808\t9223372036854775808\n"));
  const SampleBlock train = ReadSet(options, *summary, summary->train_source);
  EXPECT_EQ(train.dense[0], 1);
  EXPECT_EQ(train.dense[13], 0);
  const SampleBlock test = ReadSet(options, *summary, summary->test_source);
  EXPECT_FLOAT_EQ(test.dense[0], 0.5f);
}

TEST(Criteo, CrossesFormAWidePartBeforeTheOtherSlots) {
  Scratch scratch;
  CriteoOptions options = ThreeDays(scratch);
  options.crosses = {{0, 1}, {1, 2}};
  auto summary = PrepareCriteo(options, nullptr);
  ASSERT_TRUE(summary.ok()) << summary.status();
  // C1_C2: (ff, a), (0, a), (1, b), (ff, a), then (ff, c), (2, b). C2_C3: a, b, c with 0.
  ASSERT_EQ(summary->slot_sizes.size(), 28u);
  EXPECT_EQ(summary->slot_sizes[0], 7u);
  EXPECT_EQ(summary->slot_sizes[1], 5u);
  EXPECT_EQ(summary->slot_sizes[2], 6u);
  EXPECT_EQ(scratch.Read("out/ids/cross_0.txt"),
            "000000ff 0000000a\n00000000 0000000a\n00000001 0000000b\n"
            "000000ff 0000000c\n00000002 0000000b\n");
  DataSetOptions data;
  data.source = summary->train_source;
  data.check = NormCheck::kSum;
  data.shape = {1, 13, {1, 26}, {2, 26}};  // as a model with a wide and a deep part reads it
  auto reader = OpenDataSet(data);
  ASSERT_TRUE(reader.ok()) << reader.status();
  SampleBlock block;
  block.Reset(2);
  ASSERT_TRUE((*reader)->Read(100, &block).ok());
  EXPECT_THAT(block.sparse[0].keys, ElementsAre(2, 7 + 2, 3, 7 + 2, 4, 7 + 3, 2, 7 + 2));
  EXPECT_EQ(block.sparse[1].keys[0], 12u + 2);

  // In formats with one key per slot, each cross gets a slot.
  options.format = DataFormat::kRaw;
  options.overwrite = true;
  summary = PrepareCriteo(options, nullptr);
  ASSERT_TRUE(summary.ok()) << summary.status();
  data = {};
  data.format = DataFormat::kRaw;
  data.source = summary->train_source;
  data.float_label_dense = true;
  data.slot_sizes = summary->slot_sizes;
  data.shape = {1, 13, {2, 26}, {0, 0}};
  reader = OpenDataSet(data);
  ASSERT_TRUE(reader.ok()) << reader.status();
  SampleBlock raw;
  raw.Reset(2);
  ASSERT_TRUE((*reader)->Read(100, &raw).ok());
  EXPECT_EQ(raw.sparse[0].keys, block.sparse[0].keys);
  EXPECT_EQ(raw.sparse[1].keys, block.sparse[1].keys);

  options.crosses = {{3, 3}};
  EXPECT_THAT(PrepareCriteo(options, nullptr).status().message(), HasSubstr("C4 and C4"));
}

}  // namespace
}  // namespace cistern::data
