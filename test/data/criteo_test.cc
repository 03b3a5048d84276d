// DLRM's preparation of Criteo's logs, on days of a few lines.
#include "worker/data/criteo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "test/data/scratch.h"

namespace cistern {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// A line: the label, the first dense field, the first two sparse fields; the others are 0 or empty.
std::string Line(int label, const std::string& i1, const std::string& c1, const std::string& c2) {
  std::string line = absl::StrCat(label, "\t", i1);
  for (int i = 1; i < 13; ++i) line += "\t0";
  line += "\t" + c1 + "\t" + c2;
  for (int i = 2; i < 26; ++i) line += "\t";
  return line + "\n";
}

CriteoOptions Options(const Scratch& scratch, const std::vector<std::string>& days) {
  CriteoOptions options;
  for (size_t i = 0; i < days.size(); ++i) {
    options.days.push_back(scratch.Write(absl::StrCat("day_", i), days[i]));
  }
  options.out = scratch.Path("out");
  options.shuffle = false;
  return options;
}

CriteoOptions ThreeDays(const Scratch& scratch) {
  return Options(scratch, {Line(1, "0", "00ff", "a") + Line(0, "", "", "a"),
                           Line(0, "-2", "1", "b") + Line(1, "5", "ff", "a"),
                           Line(1, "-7", "00ff", "c") + Line(0, "3", "2", "b")});
}

SampleBlock ReadSet(const CriteoOptions& options, const CriteoSummary& summary,
                    const std::string& source) {
  DataSetOptions data;
  data.format = options.format;
  data.source = source;
  data.check = options.check;
  data.float_label_dense = true;
  data.shape = {1, 13, {26}, {0}};
  if (options.format != DataFormat::kNorm) data.slot_sizes = summary.slot_sizes;
  SampleBlock block;
  block.Reset(1);
  auto reader = OpenDataSet(data);
  EXPECT_TRUE(reader.ok()) << reader.status();
  if (!reader.ok()) return block;
  for (size_t got = 1; got > 0;) {
    const auto read = (*reader)->Read(1000, &block);
    EXPECT_TRUE(read.ok()) << read.status();
    got = read.ok() ? *read : 0;
  }
  return block;
}

std::string ErrorOf(const CriteoOptions& options, absl::StatusCode code) {
  const absl::Status status = PrepareCriteo(options, nullptr).status();
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_FALSE(std::filesystem::exists(options.out));
  return std::string(status.message());
}

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
  EXPECT_FLOAT_EQ(test.dense[0], 0);  // -7 counts as -2
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
  // Of a shuffle, about half of the first half comes from the first half.
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

TEST(Criteo, BadLinesAreNamedAndLeaveNothing) {
  Scratch scratch;
  const std::string good = Line(1, "0", "1", "2");
  const auto error = [&](const std::string& bad) {
    return ErrorOf(Options(scratch, {good + good + bad, good}), absl::StatusCode::kDataLoss);
  };
  EXPECT_THAT(error(Line(0, "x", "1", "2")),
              AllOf(HasSubstr("day_0"), HasSubstr("line 3"),
                    HasSubstr("column I1 'x' is not a whole number")));
  EXPECT_THAT(error(Line(0, "1", "1", "xyz")), HasSubstr("column C2 'xyz' is not a hexadecimal"));
  EXPECT_THAT(error("1\t2\t3\n"), HasSubstr("has 3 fields"));
  EXPECT_THAT(error(good.substr(0, good.size() - 1) + "\t1\n"), HasSubstr("more fields"));
  CriteoOptions options = Options(scratch, {good});
  EXPECT_THAT(ErrorOf(options, absl::StatusCode::kInvalidArgument), HasSubstr("at least two"));
  options.days.push_back(scratch.Path("absent"));
  EXPECT_THAT(ErrorOf(options, absl::StatusCode::kInvalidArgument), HasSubstr("absent"));
}

}  // namespace
}  // namespace cistern
