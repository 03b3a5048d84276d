// Raw files: reads both kinds bit by bit, and refuses everything else.
#include "worker/data/format/raw_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "test/worker/data/scratch.h"

namespace cistern::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr size_t kSampleBytes = 4 * (1 + 2 + 3);

// One label, two dense features, and two inputs with 2 slots and 1 slot, of sizes 10, 4 and 7.
RawOptions Options(const std::string& source) {
  RawOptions options;
  options.source = source;
  options.shape = {1, 2, {2, 1}, {0, 0}};
  options.slot_sizes = {10, 4, 7};
  return options;
}

template <typename T>
std::string Sample(std::vector<T> numbers, std::vector<uint32_t> keys) {
  std::string bytes;
  for (T x : numbers) bytes += Bytes(x);
  for (uint32_t key : keys) bytes += Bytes(key);
  return bytes;
}

std::string ThreeSamples() {
  return Sample<int>({1, 0, 5}, {0, 3, 6}) + Sample<int>({0, 7, 0}, {9, 0, 0}) +
         Sample<int>({0, 1, 2}, {4, 1, 2});
}

absl::Status ReadAll(const RawOptions& options, SampleBlock* block, size_t step = 1000) {
  block->Reset(options.shape.slot_nums.size());
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<SampleReader> reader, OpenRaw(options));
  while (true) {
    CISTERN_ASSIGN_OR_RETURN(const size_t got, reader->Read(step, block));
    if (got == 0) return absl::OkStatus();
  }
}

std::string ErrorOf(const RawOptions& options, absl::StatusCode code, size_t good = 0) {
  SampleBlock block;
  const absl::Status status = ReadAll(options, &block);
  EXPECT_EQ(status.code(), code) << status;
  // The block holds exactly the samples before the bad one.
  EXPECT_EQ(block.size, good);
  EXPECT_EQ(block.label.size(), block.size);
  EXPECT_EQ(block.dense.size(), 2 * block.size);
  for (size_t i = 0; i < block.sparse.size(); ++i) {
    EXPECT_EQ(block.sparse[i].offsets.size(), options.shape.slot_nums[i] * block.size + 1);
    EXPECT_EQ(block.sparse[i].offsets.back(), block.sparse[i].keys.size());
  }
  return std::string(status.message());
}

TEST(Raw, ReadsEverySampleInAnyStep) {
  Scratch scratch;
  const RawOptions options = Options(scratch.Write("a.bin", ThreeSamples()));
  for (size_t step : {1, 2, 3, 100}) {
    SampleBlock block;
    ASSERT_TRUE(ReadAll(options, &block, step).ok());
    EXPECT_EQ(block.size, 3u);
    EXPECT_THAT(block.label, ElementsAre(1, 0, 0));
    EXPECT_THAT(block.dense,
                ElementsAre(0, std::log(6.0f), std::log(8.0f), 0, std::log(2.0f), std::log(3.0f)));
    EXPECT_THAT(block.sparse[0].offsets, ElementsAre(0, 1, 2, 3, 4, 5, 6));
    EXPECT_THAT(block.sparse[0].keys, ElementsAre(0, 13, 9, 10, 4, 11));
    EXPECT_THAT(block.sparse[1].keys, ElementsAre(20, 14, 16));
  }
}

TEST(Raw, SeveralThreadsDecodeALargeRead) {
  constexpr uint32_t kSamples = 30000;
  std::string bytes;
  for (uint32_t i = 0; i < kSamples; ++i) {
    bytes += Sample<int>({static_cast<int>(i % 2), static_cast<int>(i), 7}, {i % 10, i % 4, i % 7});
  }
  Scratch scratch;
  RawOptions options = Options(scratch.Write("large.bin", bytes));
  SampleBlock small, large;
  ASSERT_TRUE(ReadAll(options, &small, 1000).ok());
  options.threads = 4;
  ASSERT_TRUE(ReadAll(options, &large, 2 * kSamples).ok());
  EXPECT_EQ(large.size, kSamples);
  EXPECT_EQ(large.label, small.label);
  EXPECT_EQ(large.dense, small.dense);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(large.sparse[i].offsets, small.sparse[i].offsets);
    EXPECT_EQ(large.sparse[i].keys, small.sparse[i].keys);
  }
  EXPECT_EQ(large.dense[2 * 29999], std::log(30000.0f));

  // The first of two bad samples is reported, and those before it are kept.
  for (const size_t bad : {29000, 21000}) bytes[bad * kSampleBytes + 12] = 99;
  options.source = scratch.Write("bad.bin", bytes);
  large.Reset(2);
  const auto reader = OpenRaw(options);
  ASSERT_TRUE(reader.ok());
  const absl::Status status = (*reader)->Read(kSamples, &large).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()), HasSubstr("record 21000"));
  EXPECT_EQ(large.size, 21000u);
  EXPECT_EQ(large.label.size(), 21000u);
  EXPECT_EQ(large.sparse[1].keys.size(), 21000u);
  EXPECT_EQ(large.sparse[1].offsets.size(), 21001u);
}

TEST(Raw, FloatsAreNotTransformed) {
  Scratch scratch;
  RawOptions options =
      Options(scratch.Write("a.bin", Sample<float>({0.25f, -3, 1e30f}, {1, 2, 3})));
  options.float_label_dense = true;
  SampleBlock block;
  ASSERT_TRUE(ReadAll(options, &block).ok());
  EXPECT_THAT(block.label, ElementsAre(0.25f));
  EXPECT_THAT(block.dense, ElementsAre(-3, 1e30f));
}

// HugeCTR's DIN: an item of the history has the key of the same item elsewhere.
TEST(Raw, SlotsOfSizeZeroShareTheKeysOfTheNextSlot) {
  Scratch scratch;
  RawOptions options = Options(scratch.Write("a.bin", ThreeSamples()));
  options.slot_sizes = {10, 0, 7};
  SampleBlock block;
  ASSERT_TRUE(ReadAll(options, &block).ok());
  EXPECT_THAT(block.sparse[0].keys, ElementsAre(0, 13, 9, 10, 4, 11));
  EXPECT_THAT(block.sparse[1].keys, ElementsAre(16, 10, 12));
  options.slot_sizes = {10, 0, 3};
  EXPECT_THAT(ErrorOf(options, absl::StatusCode::kOutOfRange, 0),
              AllOf(HasSubstr("slot 1 of input 0: key 3 is outside [0, 3)"),
                    HasSubstr("slot_size_array[1]")));
}

TEST(Raw, KeysAreNotOffsetWithoutSizes) {
  Scratch scratch;
  RawOptions options = Options(scratch.Write("a.bin", Sample<int>({0, 0, 0}, {4000000000u, 1, 0})));
  options.slot_sizes.clear();
  SampleBlock block;
  ASSERT_TRUE(ReadAll(options, &block).ok());
  EXPECT_THAT(block.sparse[0].keys, ElementsAre(4000000000u, 1));
  EXPECT_THAT(block.sparse[1].keys, ElementsAre(0));
}

TEST(Raw, NumSamplesLimitsTheSamplesRead) {
  Scratch scratch;
  RawOptions options = Options(scratch.Write("a.bin", ThreeSamples()));
  options.num_samples = 2;
  SampleBlock block;
  ASSERT_TRUE(ReadAll(options, &block).ok());
  EXPECT_EQ(block.size, 2u);
  options.num_samples = 4;
  EXPECT_THAT(ErrorOf(options, absl::StatusCode::kInvalidArgument),
              AllOf(HasSubstr("num_samples is 4"), HasSubstr("a.bin"), HasSubstr("3 samples")));
}

TEST(Raw, SkipCrossesFiles) {
  Scratch scratch;
  scratch.Write("a.bin", ThreeSamples());
  scratch.Write("b.bin", ThreeSamples());
  const RawOptions options = Options(scratch.Write("list", "2\na.bin\nb.bin\n"));
  SampleBlock whole, block, lost;
  ASSERT_TRUE(ReadAll(options, &whole).ok());
  ASSERT_EQ(whole.size, 6u);
  for (uint64_t skip = 0; skip <= 7; ++skip) {
    auto reader = OpenRaw(options);
    ASSERT_TRUE(reader.ok());
    EXPECT_EQ(*(*reader)->Skip(skip, &lost), std::min<uint64_t>(skip, 6));
    block.Reset(2);
    size_t got = 0;
    for (size_t n = 1; n > 0; got += n) n = *(*reader)->Read(2, &block);
    EXPECT_EQ(got, skip >= 6 ? 0 : 6 - skip);
    EXPECT_EQ(block.label, std::vector<float>(whole.label.end() - got, whole.label.end()));
  }
}

TEST(Raw, RefusesAFileSizeThatIsNotAMultipleOfTheSampleSize) {
  Scratch scratch;
  const std::string bytes = ThreeSamples();
  for (size_t size = 1; size < bytes.size(); ++size) {
    if (size % kSampleBytes == 0) continue;
    const RawOptions options = Options(scratch.Write("a.bin", bytes.substr(0, size)));
    EXPECT_THAT(ErrorOf(options, absl::StatusCode::kDataLoss),
                AllOf(HasSubstr("a.bin"), HasSubstr("whole number of samples"),
                      HasSubstr("samples of 24 bytes"), HasSubstr("dense_dim 2")));
  }
}

TEST(Raw, RefusesKeysOutsideTheirSlot) {
  Scratch scratch;
  for (uint32_t key : {4u, 100u, 0xFFFFFFFFu, 0x80000000u}) {
    const RawOptions options =
        Options(scratch.Write("a.bin", ThreeSamples() + Sample<int>({0, 0, 0}, {0, key, 0})));
    EXPECT_THAT(ErrorOf(options, absl::StatusCode::kOutOfRange, 3),
                AllOf(HasSubstr("a.bin: record 3: slot 1 of input 0: key "),
                      HasSubstr(std::to_string(static_cast<int32_t>(key))),
                      HasSubstr("outside [0, 4)"), HasSubstr("slot_size_array[1]")));
  }
}

TEST(Raw, RefusesTheReservedKeyWithoutSizes) {
  Scratch scratch;
  RawOptions options = Options(scratch.Write("a.bin", Sample<int>({0, 0, 0}, {0, 1, 0xFFFFFFFFu})));
  options.slot_sizes.clear();
  EXPECT_THAT(ErrorOf(options, absl::StatusCode::kOutOfRange),
              HasSubstr("record 0: slot 0 of input 1: key 4294967295 is the reserved key"));
}

TEST(Raw, RefusesNumbersWithoutALogarithm) {
  Scratch scratch;
  const RawOptions options =
      Options(scratch.Write("a.bin", ThreeSamples() + Sample<int>({1, 3, -1}, {0, 0, 0})));
  EXPECT_THAT(ErrorOf(options, absl::StatusCode::kDataLoss, 3),
              AllOf(HasSubstr("record 3: dense feature 1 is -1"), HasSubstr("float_label_dense")));
}

TEST(Raw, RefusesFloatsThatAreNotFinite) {
  Scratch scratch;
  for (float x : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    RawOptions options = Options(scratch.Write("a.bin", Sample<float>({x, 1, 2}, {0, 0, 0})));
    options.float_label_dense = true;
    EXPECT_THAT(ErrorOf(options, absl::StatusCode::kDataLoss),
                HasSubstr("record 0: label 0 is not a finite number"));
  }
}

TEST(Raw, RefusesSlotSizesThatDoNotMatchTheSlots) {
  Scratch scratch;
  RawOptions options = Options(scratch.Write("a.bin", ThreeSamples()));
  options.slot_sizes = {10, 4};
  EXPECT_THAT(ErrorOf(options, absl::StatusCode::kInvalidArgument),
              AllOf(HasSubstr("2 sizes"), HasSubstr("3 slots")));
  options.slot_sizes = {10, 1, 0};
  EXPECT_THAT(ErrorOf(options, absl::StatusCode::kInvalidArgument),
              AllOf(HasSubstr("slot_size_array[2] is 0"), HasSubstr("none follows")));
  options.slot_sizes = {10, ~uint64_t{0} >> 1, 1};
  EXPECT_THAT(ErrorOf(options, absl::StatusCode::kInvalidArgument), HasSubstr("2^63"));
}

TEST(Raw, RefusesEmptyAndCompressedFilesOfAList) {
  Scratch scratch;
  const std::string list = scratch.Write("list", "1\na.bin\n");
  scratch.Write("a.bin", "");
  EXPECT_THAT(ErrorOf(Options(list), absl::StatusCode::kDataLoss),
              HasSubstr("a.bin has 0 bytes: it is cut short"));
  scratch.Write("a.bin", "\x1f\x8b\x08" + std::string(40, '\0'));
  EXPECT_THAT(ErrorOf(Options(list), absl::StatusCode::kDataLoss),
              AllOf(HasSubstr("a.bin is not a Raw file"), HasSubstr("gzip: decompress it"),
                    testing::Not(HasSubstr("cut short"))));
}

TEST(Raw, RefusesAFileThatShrinks) {
  Scratch scratch;
  const std::string path = scratch.Write("a.bin", ThreeSamples());
  auto reader = OpenRaw(Options(path));
  ASSERT_TRUE(reader.ok());
  SampleBlock block;
  block.Reset(2);
  ASSERT_TRUE((*reader)->Read(1, &block).ok());
  std::filesystem::resize_file(path, kSampleBytes);
  EXPECT_EQ((*reader)->Read(2, &block).status().code(), absl::StatusCode::kDataLoss);
}

TEST(Raw, ErrorNamesAMissingFile) {
  EXPECT_THAT(ErrorOf(Options("no/such.bin"), absl::StatusCode::kNotFound),
              HasSubstr("no/such.bin"));
}

}  // namespace
}  // namespace cistern::data
