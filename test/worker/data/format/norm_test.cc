// Norm files: reads and writes every kind byte by byte, and refuses everything else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "test/support/temp_folder.h"
#include "test/worker/data/scratch.h"
#include "worker/data/format/norm_writer.h"
#include "worker/data/format/sample_reader.h"

namespace cistern::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Two inputs of 2 and 1 slots, 1 label, 2 dense features; three samples.
constexpr size_t kRecords = 3;

NormOptions Options(const std::string& source, bool sum, bool wide) {
  NormOptions options;
  options.source = source;
  options.check = sum ? NormCheck::kSum : NormCheck::kNone;
  options.wide_keys = wide;
  options.shape = {1, 2, {2, 1}, {4, 3}};
  return options;
}

std::vector<std::string> Records(bool wide) {
  const uint64_t big = wide ? 0x7FFFFFFFFFFFFFFEull : 0xFFFFFFFEull;
  return {NormSampleBytes(wide, {1, 0.5f, -2}, {{7, 8}, {}, {big}}),
          NormSampleBytes(wide, {0, 0, 3}, {{}, {}, {}}),
          NormSampleBytes(wide, {0, 1e30f, -0.0f}, {{9}, {10, 11, 10}, {1, 2, 3}})};
}

std::string Golden(bool sum, bool wide) {
  std::string bytes = NormRecordBytes(sum, NormHeaderBytes(sum, kRecords, 1, 2, 3));
  for (const std::string& record : Records(wide)) bytes += NormRecordBytes(sum, record);
  return bytes;
}

// Reads all samples into `block`, `step` at a time; after an error, the block has the samples
// before.
absl::Status ReadAll(const NormOptions& options, SampleBlock* block, size_t step = 1000) {
  block->Reset(options.shape.slot_nums.size());
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<SampleReader> reader, OpenNorm(options));
  while (true) {
    CISTERN_ASSIGN_OR_RETURN(const size_t got, reader->Read(step, block));
    if (got == 0) return absl::OkStatus();
  }
}

std::string ErrorOf(const NormOptions& options) {
  SampleBlock block;
  const absl::Status status = ReadAll(options, &block);
  // Even after an error, the block holds complete samples.
  EXPECT_EQ(block.label.size(), block.size);
  EXPECT_EQ(block.dense.size(), 2 * block.size);
  for (size_t i = 0; i < block.sparse.size(); ++i) {
    EXPECT_EQ(block.sparse[i].offsets.size(), options.shape.slot_nums[i] * block.size + 1);
    EXPECT_EQ(block.sparse[i].offsets.back(), block.sparse[i].keys.size());
  }
  return status.ok() ? "" : std::string(status.message());
}

class NormKinds : public testing::TestWithParam<std::pair<bool, bool>> {
 protected:
  bool sum() const { return GetParam().first; }
  bool wide() const { return GetParam().second; }
  Scratch scratch_;
};
INSTANTIATE_TEST_SUITE_P(SumAndWidth, NormKinds,
                         testing::Values(std::pair(false, false), std::pair(false, true),
                                         std::pair(true, false), std::pair(true, true)));

TEST_P(NormKinds, ReadsEverySample) {
  const Key big = wide() ? 0x7FFFFFFFFFFFFFFEull : 0xFFFFFFFEull;
  const std::string path = scratch_.Write("a.norm", Golden(sum(), wide()));
  for (size_t step : {1, 2, 3, 100}) {
    SampleBlock block;
    ASSERT_TRUE(ReadAll(Options(path, sum(), wide()), &block, step).ok());
    EXPECT_EQ(block.size, 3u);
    EXPECT_THAT(block.label, ElementsAre(1, 0, 0));
    EXPECT_THAT(block.dense, ElementsAre(0.5f, -2, 0, 3, 1e30f, 0));
    EXPECT_THAT(block.sparse[0].offsets, ElementsAre(0, 2, 2, 2, 2, 3, 6));
    EXPECT_THAT(block.sparse[0].keys, ElementsAre(7, 8, 9, 10, 11, 10));
    EXPECT_THAT(block.sparse[1].offsets, ElementsAre(0, 1, 1, 4));
    EXPECT_THAT(block.sparse[1].keys, ElementsAre(big, 1, 2, 3));
  }
}

TEST_P(NormKinds, WriterProducesTheGoldenBytes) {
  const std::string path = scratch_.Write("a.norm", Golden(sum(), wide()));
  SampleBlock block;
  ASSERT_TRUE(ReadAll(Options(path, sum(), wide()), &block).ok());
  const NormWriterOptions options = {
      sum() ? NormCheck::kSum : NormCheck::kNone, wide(), {1, 2, {2, 1}, {4, 3}}};
  auto writer = NormWriter::Create(Disk(), scratch_.Path("b.norm"), options);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->Append(block, 0, 1).ok());
  ASSERT_TRUE((*writer)->Append(block, 1, 2).ok());
  EXPECT_FALSE(std::filesystem::exists(scratch_.Path("b.norm")));
  ASSERT_TRUE((*writer)->Close().ok());
  EXPECT_EQ(scratch_.Read("b.norm"), Golden(sum(), wide()));
}

TEST_P(NormKinds, RefusesEveryTruncation) {
  const std::string golden = Golden(sum(), wide());
  size_t begin = sum() ? 69 : 64;  // of the truncated record
  size_t record = 0;
  const std::vector<std::string> records = Records(wide());
  for (size_t size = 0; size < golden.size(); ++size) {
    const std::string error =
        ErrorOf(Options(scratch_.Write("a.norm", golden.substr(0, size)), sum(), wide()));
    ASSERT_NE(error, "") << size;
    EXPECT_THAT(error, HasSubstr("a.norm"));
    if (size < (sum() ? 69u : 64u)) continue;
    while (size >= begin + NormRecordBytes(sum(), records[record]).size()) {
      begin += NormRecordBytes(sum(), records[record++]).size();
    }
    EXPECT_THAT(error, HasSubstr("record " + std::to_string(record) + ": ")) << size;
    EXPECT_THAT(error, HasSubstr("cut short")) << size;
  }
}

TEST_P(NormKinds, RefusesTrailingBytes) {
  const std::string path = scratch_.Write("a.norm", Golden(sum(), wide()) + 'x');
  EXPECT_THAT(ErrorOf(Options(path, sum(), wide())), HasSubstr("bytes follow the last"));
}

TEST_P(NormKinds, RefusesTheOtherCheckAndNamesTheSetting) {
  const std::string path = scratch_.Write("a.norm", Golden(sum(), wide()));
  EXPECT_THAT(ErrorOf(Options(path, !sum(), wide())),
              HasSubstr(sum() ? "\"check\": \"Sum\"" : "\"check\": \"None\""));
}

TEST_P(NormKinds, HintsAtTheOtherKeyWidth) {
  const std::string path = scratch_.Write("a.norm", Golden(sum(), wide()));
  EXPECT_THAT(
      ErrorOf(Options(path, sum(), !wide())),
      HasSubstr(wide() ? "is solver.input_key_type I64?" : "is solver.input_key_type I32?"));
}

TEST(Norm, RefusesKeysOutsideTheSizeOfTheirSlot) {
  const Scratch scratch;
  NormOptions options = Options(scratch.Write("a.norm", Golden(true, false)), true, false);
  options.slot_starts = {{7, 10, 12}};  // the second input accepts any key
  EXPECT_EQ(ErrorOf(options), "");
  options.slot_starts = {{7, 9, 12}, {}};
  EXPECT_THAT(ErrorOf(options), HasSubstr("record 2: slot 0 of input 0: key 9 is outside [7, 9) "
                                          "that slot_size_array[0] of its one-hot embedding"));
  options.slot_starts = {{8, 10, 12}, {}};
  EXPECT_THAT(ErrorOf(options), HasSubstr("record 0: slot 0 of input 0: key 7 is outside [8, 10)"));
}

TEST(NormSum, RefusesEveryFlippedBit) {
  Scratch scratch;
  for (bool wide : {false, true}) {
    const std::string golden = Golden(true, wide);
    for (size_t bit = 0; bit < golden.size() * 8; ++bit) {
      std::string bytes = golden;
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
      EXPECT_NE(ErrorOf(Options(scratch.Write("a.norm", bytes), true, wide)), "") << bit;
    }
  }
}

TEST(NormSum, RefusesARecordLongerThanItsSlotsDespiteACorrectSum) {
  Scratch scratch;
  const std::string bytes =
      NormRecordBytes(true, NormHeaderBytes(true, 1, 1, 2, 3)) +
      NormRecordBytes(true, NormSampleBytes(false, {0, 0, 0}, {{1}, {}, {}}) + '\0');
  EXPECT_THAT(ErrorOf(Options(scratch.Write("a.norm", bytes), true, false)),
              HasSubstr("record 0: its length is 29 bytes, but its slots take 28"));
}

// Reads or refuses any bytes, without other effects (run this under the sanitizers).
TEST(Norm, ReadsOrRefusesAnyBytes) {
  Scratch scratch;
  std::mt19937_64 random(3);
  size_t refused = 0;
  for (int round = 0; round < 3000; ++round) {
    const bool sum = round % 2 == 0, wide = round % 4 < 2;
    std::string bytes = Golden(sum, wide);
    for (size_t n = 1 + random() % 4; n > 0; --n) {
      bytes[random() % bytes.size()] = static_cast<char>(random() % 3 == 0 ? 255 : random());
    }
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    NormOptions options = Options(scratch.Write("a.norm", bytes), sum, wide);
    if (round % 3 == 0) options.shape.max_keys = {0, 0};
    refused += !ErrorOf(options).empty();
  }
  EXPECT_GT(refused, 2000u);
}

// The error of a file with check None and the record `sample`.
std::string ErrorOfSample(const std::string& sample, bool wide, int64_t records = 1) {
  Scratch scratch;
  const std::string bytes = NormHeaderBytes(false, records, 1, 2, 3) + sample;
  return ErrorOf(Options(scratch.Write("a.norm", bytes), false, wide));
}

TEST(Norm, RefusesReservedAndNegativeKeysByName) {
  EXPECT_THAT(ErrorOfSample(NormSampleBytes(false, {0, 0, 0}, {{1}, {5, 0xFFFFFFFF}, {}}), false),
              HasSubstr("record 0: slot 1 of input 0: key 1 is the reserved key 4294967295"));
  EXPECT_THAT(ErrorOfSample(NormSampleBytes(true, {0, 0, 0}, {{}, {}, {0x7FFFFFFFFFFFFFFF}}), true),
              HasSubstr("slot 0 of input 1: key 0 is the reserved key 9223372036854775807"));
  EXPECT_THAT(ErrorOfSample(NormSampleBytes(true, {0, 0, 0}, {{1}, {~0ull}, {}}), true),
              HasSubstr("slot 1 of input 0: key 0 is negative: -1"));
}

TEST(Norm, RefusesMoreKeysThanTheInputAllows) {
  EXPECT_THAT(
      ErrorOfSample(NormSampleBytes(false, {0, 0, 0}, {{1, 2, 3}, {4, 5}, {}}), false),
      HasSubstr(
          "record 0: slot 1 of input 0 declares 2 keys, but only 1 of the 4 that a "
          "sample may hold in this input are left: raise sparse[0].max_feature_num_per_sample"));
  const std::string floats = Bytes(0.f) + Bytes(0.f) + Bytes(0.f);
  EXPECT_THAT(ErrorOfSample(floats + Bytes<int32_t>(-1), false), HasSubstr("declares -1 keys"));
  EXPECT_THAT(ErrorOfSample(floats + Bytes<int32_t>(0x7FFFFFFF) + std::string(8, '\0'), false),
              HasSubstr("declares 2147483647 keys"));
}

TEST(Norm, RefusesAHugeUnboundedCountBeforeAllocating) {
  Scratch scratch;
  const std::string bytes = NormHeaderBytes(false, 1, 1, 2, 3) + Bytes(0.f) + Bytes(0.f) +
                            Bytes(0.f) + Bytes<int32_t>(0x7FFFFFFF) + std::string(100, '\0');
  NormOptions options = Options(scratch.Write("a.norm", bytes), false, false);
  options.shape.max_keys = {};
  EXPECT_THAT(ErrorOf(options), HasSubstr("more than a record can hold"));
}

TEST(Norm, RefusesNumbersThatAreNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT(ErrorOfSample(NormSampleBytes(false, {nan, 0, 0}, {{}, {}, {}}), false),
              HasSubstr("record 0: label 0 is not a finite number"));
  EXPECT_THAT(ErrorOfSample(NormSampleBytes(false, {1, 0, -infinity}, {{}, {}, {}}), false),
              HasSubstr("record 0: dense feature 1 is not a finite number"));
}

TEST(Norm, RefusesAHeaderOfAnotherShapeAndNamesBothShapes) {
  Scratch scratch;
  const std::string path = scratch.Write("a.norm", NormHeaderBytes(false, 0, 1, 13, 26));
  NormOptions options = Options(path, false, false);
  const auto reader = OpenNorm(options);
  EXPECT_EQ(reader.status().code(), absl::StatusCode::kInvalidArgument);
  const std::string error(reader.status().message());
  EXPECT_THAT(error, HasSubstr("label_dim 1, dense_dim 13, slot_num 26"));
  EXPECT_THAT(error, HasSubstr("label_dim 1, dense_dim 2, slot_num 3"));
  EXPECT_THAT(error, HasSubstr("correct dense.dense_dim, the sum of sparse[].slot_num"));
}

// HugeCTR 2.3 compares error_check and slot_num of a header, and never looks at reserved[3].
TEST(Norm, ReadsAnyReservedFields) {
  Scratch scratch;
  std::string bytes = NormHeaderBytes(false, 1, 1, 2, 3).replace(40, 24, std::string(24, '\1'));
  bytes += NormSampleBytes(false, {0, 0, 0}, {{1}, {}, {}});
  EXPECT_EQ(ErrorOf(Options(scratch.Write("a.norm", bytes), false, false)), "");
}

TEST(Norm, AnUnknownCheckIsTooNew) {
  Scratch scratch;
  std::string bytes = Golden(false, false);
  bytes[0] = 2;
  SampleBlock block;
  const absl::Status status =
      ReadAll(Options(scratch.Write("a.norm", bytes), false, false), &block);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("a.norm has error_check 2"));
}

TEST(Norm, AnEmptyFileOfAListIsCutShortWithoutAHint) {
  Scratch scratch;
  scratch.Write("a.norm", "");
  const std::string error = ErrorOf(Options(scratch.Write("list", "1\na.norm\n"), false, false));
  EXPECT_THAT(error, HasSubstr("cut short"));
  EXPECT_THAT(error, testing::Not(HasSubstr("it is text")));
}

TEST(Norm, ReadsRecordsLargerThanItsBuffer) {
  Scratch scratch;
  std::vector<uint64_t> many(700000);  // 5.6 MB
  for (size_t i = 0; i < many.size(); ++i) many[i] = i;
  const std::vector<uint64_t> few(many.begin(), many.begin() + 1000);
  for (bool sum : {false, true}) {
    std::string bytes = NormRecordBytes(sum, NormHeaderBytes(sum, 40, 1, 2, 3));
    for (uint64_t i = 0; i < 40; ++i) {
      bytes += NormRecordBytes(
          sum, NormSampleBytes(true, {0, 0, 0}, {{}, i % 13 == 5 ? many : few, {i}}));
    }
    NormOptions options = Options(scratch.Write("a.norm", bytes), sum, true);
    options.shape.max_keys = {0, 0};
    SampleBlock block;
    ASSERT_TRUE(ReadAll(options, &block, 7).ok());
    ASSERT_EQ(block.size, 40u);
    for (size_t i = 0; i < 40; ++i) {
      EXPECT_EQ(block.sparse[1].keys[i], i);
      const uint32_t* offsets = block.sparse[0].offsets.data() + 2 * i;
      EXPECT_EQ(offsets[2] - offsets[1], i % 13 == 5 ? many.size() : few.size());
      EXPECT_EQ(block.sparse[0].keys[offsets[2] - 1], offsets[2] - offsets[1] - 1);
    }
  }
}

TEST(Norm, AFileWithoutRecordsHasNoSamples) {
  Scratch scratch;
  SampleBlock block;
  const std::string path = scratch.Write("a.norm", NormHeaderBytes(false, 0, 1, 2, 3));
  EXPECT_TRUE(ReadAll(Options(path, false, false), &block).ok());
  EXPECT_EQ(block.size, 0u);
}

// Files whose only sample has label `i`.
std::string WriteOne(const Scratch& scratch, const std::string& name, int i) {
  return scratch.Write(name, NormHeaderBytes(false, 1, 1, 2, 3) +
                                 NormSampleBytes(false, {float(i), 0, 0}, {{}, {}, {}}));
}

TEST(NormFileList, ReadsFilesInOrder) {
  Scratch scratch;
  std::string list = "5\n";
  for (int i = 0; i < 5; ++i) {
    const std::string name = "part-" + std::to_string(i);
    const std::string path = WriteOne(scratch, "data/" + name, i);
    list += (i % 2 == 0 ? name : path) + "\r\n";
  }
  SampleBlock block;
  ASSERT_TRUE(ReadAll(Options(scratch.Write("data/list.txt", list), false, false), &block).ok());
  EXPECT_THAT(block.label, ElementsAre(0, 1, 2, 3, 4));
}

TEST(NormFileList, ReadAfterSkipReturnsTheRemainingSamples) {
  Scratch scratch;
  scratch.Write("three", Golden(false, false));  // labels 1, 0, 0
  WriteOne(scratch, "four", 4);
  scratch.Write("none", NormHeaderBytes(false, 0, 1, 2, 3));
  WriteOne(scratch, "five", 5);
  const NormOptions options =
      Options(scratch.Write("list", "4\nthree\nfour\nnone\nfive\n"), false, false);
  const std::vector<float> all = {1, 0, 0, 4, 5};
  for (size_t read = 0; read <= all.size(); ++read) {
    for (size_t skip = 0; read + skip <= all.size(); ++skip) {
      auto reader = OpenNorm(options);
      ASSERT_TRUE(reader.ok()) << reader.status();
      SampleBlock block, scratch_block;
      block.Reset(2);
      scratch_block.Reset(2);
      ASSERT_EQ((*reader)->Read(read, &block).value(), read);
      ASSERT_EQ((*reader)->Skip(skip, &scratch_block).value(), skip);
      block.Reset(2);
      ASSERT_TRUE((*reader)->Read(100, &block).ok());
      EXPECT_EQ(block.label, std::vector<float>(all.begin() + read + skip, all.end()));
    }
  }
  SampleBlock block;
  block.Reset(2);
  EXPECT_EQ((*OpenNorm(options))->Skip(100, &block).value(), all.size());
}

TEST(NormFileList, CommaJoinsListsAndFiles) {
  Scratch scratch;
  const std::string one = WriteOne(scratch, "one", 1), two = WriteOne(scratch, "two", 2);
  const std::string list = scratch.Write("list", "1\ntwo\n");
  SampleBlock block;
  ASSERT_TRUE(ReadAll(Options(list + "," + one + ", " + two, false, false), &block).ok());
  EXPECT_THAT(block.label, ElementsAre(2, 1, 2));
}

TEST(NormFileList, RefusesInconsistentLists) {
  Scratch scratch;
  WriteOne(scratch, "one", 1);
  const auto error = [&](const std::string& list) {
    return ErrorOf(Options(scratch.Write("list", list), false, false));
  };
  EXPECT_THAT(error("2\none\n"), HasSubstr("line 1 declares 2 files, but 1 paths follow"));
  EXPECT_THAT(error("0\none\n"), HasSubstr("line 1 declares 0 files, but 1 paths follow"));
  EXPECT_THAT(error("2\none\nnone\n"), HasSubstr("line 3: no file 'none'"));
  EXPECT_THAT(error("2x\none\n"), HasSubstr("line 1 of a file list must be the number of files"));
  EXPECT_THAT(error("one\n"), HasSubstr("not a Norm file"));
  EXPECT_THAT(error(""), HasSubstr("is empty"));
  EXPECT_EQ(OpenNorm(Options(scratch.Path("absent"), false, false)).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(NormFileList, RefusesABadFileOfTheListAtOpen) {
  Scratch scratch;
  WriteOne(scratch, "one", 1);
  scratch.Write("two", NormHeaderBytes(false, 1, 1, 2, 4));
  const auto reader = OpenNorm(Options(scratch.Write("list", "2\none\ntwo\n"), false, false));
  EXPECT_THAT(std::string(reader.status().message()), HasSubstr("two holds samples of"));
}

}  // namespace
}  // namespace cistern::data
