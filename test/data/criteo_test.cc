// DLRM's preparation of Criteo's logs, on days of a few lines.
#include "worker/data/criteo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "test/data/scratch.h"
#include "worker/data/criteo_ids.h"
#include "worker/data/work_folder.h"

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

// Keys of one column of a Raw set, whose keys are ids.
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
  options.dense = DenseTransform::kLog1;
  auto summary = PrepareCriteo(options, nullptr);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->clipped, 2u);  // -2 and -7
  SampleBlock train = ReadSet(options, *summary, summary->train_source);
  EXPECT_FLOAT_EQ(train.dense[0], 0);
  EXPECT_FLOAT_EQ(train.dense[26], 0);
  EXPECT_FLOAT_EQ(train.dense[39], std::log(6.0f));
  EXPECT_FALSE(std::filesystem::exists(scratch.Path("out/dense_ranges.tsv")));

  options.dense = DenseTransform::kMinMax;
  options.overwrite = true;
  summary = PrepareCriteo(options, nullptr);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->clipped, 1u);  // the -7 of the last day; training goes from -2 to 5
  train = ReadSet(options, *summary, summary->train_source);
  EXPECT_FLOAT_EQ(train.dense[0], 2.0f / 7);
  EXPECT_FLOAT_EQ(train.dense[26], 0);
  EXPECT_FLOAT_EQ(train.dense[39], 1);
  EXPECT_FLOAT_EQ(train.dense[1], 0);  // a constant
  const SampleBlock test = ReadSet(options, *summary, summary->test_source);
  EXPECT_FLOAT_EQ(test.dense[0], 0);
  EXPECT_FLOAT_EQ(test.dense[13], 5.0f / 7);
  EXPECT_THAT(scratch.Read("out/dense_ranges.tsv"), HasSubstr("I1\t-2\t5\nI2\t0\t0\n"));
}

TEST(Criteo, CrossesAreAWidePartBeforeTheOthers) {
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

  // A slot each where slots hold one key.
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

// Days in which values repeat within and between pieces.
CriteoOptions ManyLines(const Scratch& scratch, int lines) {
  std::mt19937 random(3);
  std::vector<std::string> days(3);
  for (std::string& day : days) {
    for (int i = 0; i < lines; ++i) {
      day += Line(random() % 4 == 0, absl::StrCat(static_cast<int>(random() % 50) - 3),
                  absl::StrCat(absl::Hex(random() % 400)), absl::StrCat(absl::Hex(random() % 20)));
    }
  }
  CriteoOptions options = Options(scratch, days);
  options.shuffle = true;
  options.crosses = {{0, 1}};
  options.min_count = 3;
  options.dense = DenseTransform::kMinMax;
  return options;
}

// All files below a folder, by name.
std::map<std::string, std::string> FilesOf(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    files[std::filesystem::relative(entry.path(), folder)] = {std::istreambuf_iterator<char>(file),
                                                              {}};
  }
  return files;
}

TEST(Criteo, ThreadsAndPiecesChangeNoByte) {
  Scratch scratch;
  CriteoOptions options = ManyLines(scratch, 40);
  options.threads = 1;
  ASSERT_TRUE(PrepareCriteo(options, nullptr).ok());
  const auto expected = FilesOf(options.out);
  EXPECT_GT(expected.size(), 30u);
  options.overwrite = true;
  // Pieces of many lines, and of one or none.
  for (const auto& [threads, block_bytes] :
       std::vector<std::pair<uint64_t, uint64_t>>{{1, 3000}, {5, 3000}, {3, 60}}) {
    options.threads = threads;
    options.block_bytes = block_bytes;
    const auto summary = PrepareCriteo(options, nullptr);
    ASSERT_TRUE(summary.ok()) << summary.status();
    EXPECT_TRUE(FilesOf(options.out) == expected) << threads << " " << block_bytes;
    EXPECT_FALSE(summary->went_on);
  }
}

TEST(Criteo, PortionsOfValuesChangeNoId) {
  Scratch scratch;
  std::mt19937 random(5);
  std::string text;
  for (int i = 0; i < 6000; ++i) {
    text += Line(0, "1", absl::StrCat(absl::Hex(random() % 4000)), "2");
  }
  const auto day = MappedFile::Open(scratch.Write("day", text));
  ASSERT_TRUE(day.ok());
  std::vector<std::string> values;
  for (uint64_t begin = 0; begin < text.size(); begin += 60000) {
    values.push_back(scratch.Path(absl::StrCat("values-", begin)));
    ASSERT_TRUE(ReadCriteoBlock(**day, {0, begin, std::min<uint64_t>(begin + 60000, text.size())},
                                DenseTransform::kLog3, {}, scratch.Path("rows"), values.back())
                    .ok());
  }
  ASSERT_GT(values.size(), 5u);
  CriteoIdOptions options;
  options.min_count = 2;
  const auto at_once =
      MakeCriteoIds(0, values, options, scratch.Path("map-1"), scratch.Path("ids-1"));
  options.memory_bytes = 10000;  // 3100 distinct values want 20 times that
  const auto in_portions =
      MakeCriteoIds(0, values, options, scratch.Path("map-2"), scratch.Path("ids-2"));
  ASSERT_TRUE(at_once.ok() && in_portions.ok()) << in_portions.status();
  EXPECT_GT(*at_once, 1000u);
  EXPECT_EQ(*at_once, *in_portions);
  EXPECT_TRUE(scratch.Read("map-1") == scratch.Read("map-2"));
  EXPECT_TRUE(scratch.Read("ids-1") == scratch.Read("ids-2"));
}

// Stopped at its first moment, its second, and so on: the next call goes on each time, and what
// comes out in the end is what a run in one go makes.
TEST(Criteo, ARunThatIsStoppedGoesOn) {
  Scratch scratch;
  CriteoOptions options = ManyLines(scratch, 300);
  options.block_bytes = 12000;
  options.threads = 2;
  ASSERT_TRUE(PrepareCriteo(options, nullptr).ok());
  const auto expected = FilesOf(options.out);
  std::filesystem::remove_all(options.out);
  int stops = 0;
  for (;; ++stops) {
    ASSERT_LT(stops, 1000);
    int moments = 0;
    const auto summary = PrepareCriteo(options, [&](uint64_t) { return ++moments <= stops; });
    if (summary.ok()) {
      EXPECT_TRUE(summary->went_on);
      break;
    }
    EXPECT_EQ(summary.status().code(), absl::StatusCode::kCancelled);
    EXPECT_FALSE(std::filesystem::exists(options.out));
    EXPECT_TRUE(std::filesystem::exists(options.out + ".partial/plan"));
  }
  EXPECT_GT(stops, 10);
  EXPECT_TRUE(FilesOf(options.out) == expected);
  EXPECT_FALSE(std::filesystem::exists(options.out + ".partial"));
}

TEST(Criteo, OtherOptionsOrDaysBeginAgain) {
  Scratch scratch;
  CriteoOptions options = ManyLines(scratch, 300);
  options.block_bytes = 12000;
  const auto stop_late = [moments = 0](uint64_t) mutable { return ++moments < 30; };
  EXPECT_FALSE(PrepareCriteo(options, stop_late).ok());
  EXPECT_TRUE(std::filesystem::exists(options.out + ".partial/values-3"));
  options.min_count = 1;
  auto summary = PrepareCriteo(options, nullptr);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_FALSE(summary->went_on);
  const auto expected = FilesOf(options.out);

  options.overwrite = true;
  EXPECT_FALSE(PrepareCriteo(options, stop_late).ok());
  scratch.Write("day_0", Line(1, "0", "abc", "def"));
  summary = PrepareCriteo(options, nullptr);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_FALSE(summary->went_on);
  EXPECT_EQ(summary->train_samples, 301u);
}

TEST(Criteo, OneProcessWorksInAFolder) {
  Scratch scratch;
  const CriteoOptions options = ThreeDays(scratch);
  {
    const auto other = WorkFolder::Open(options.out, "another plan");
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_THAT(ErrorOf(options, absl::StatusCode::kInvalidArgument),
                HasSubstr("another process works in"));
    EXPECT_TRUE(std::filesystem::exists((*other)->Path("plan")));
  }
  EXPECT_TRUE(PrepareCriteo(options, nullptr).ok());
}

TEST(Criteo, ErrorsOfAnyThreadAreThoseOfTheFirstBadLine) {
  Scratch scratch;
  std::string day;
  for (int i = 0; i < 200; ++i) day += Line(0, "1", "2", i % 50 == 33 ? "xyz" : "3");
  CriteoOptions options = Options(scratch, {day, Line(0, "1", "2", "3")});
  options.threads = 4;
  options.block_bytes = 1000;
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(ErrorOf(options, absl::StatusCode::kDataLoss), HasSubstr("line 34: column C2"));
    EXPECT_FALSE(std::filesystem::exists(options.out + ".partial"));
  }
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
