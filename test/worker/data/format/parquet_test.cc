// Parquet files from pyarrow (test/golden/parquet): all encodings read to the same bits, and every
// error names its place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "absl/strings/escaping.h"
#include "test/support/temp_folder.h"
#include "test/worker/data/scratch.h"
#include "worker/data/format/data_streams.h"
#include "worker/data/format/parquet_reader.h"
#include "worker/data/format/sample_set_writer.h"

namespace cistern::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr size_t kRows = 10;

std::string Golden(const std::string& name) {
  return std::string(CISTERN_SOURCE_DIR "/test/golden/parquet/") + name;
}

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

ParquetOptions Options(const std::string& source) {
  ParquetOptions options;
  options.source = source;
  options.shape = {1, 2, {2, 1}, {0, 0}};
  options.slot_sizes = {10, 4, 7};
  return options;
}

absl::Status ReadAll(const ParquetOptions& options, SampleBlock* block, size_t step = 1000) {
  block->Reset(options.shape.slot_nums.size());
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<SampleReader> reader, OpenParquet(options));
  while (true) {
    CISTERN_ASSIGN_OR_RETURN(const size_t got, reader->Read(step, block));
    if (got == 0) return absl::OkStatus();
  }
}

// The samples that make.py writes.
SampleBlock Expected() {
  SampleBlock block;
  block.Reset(2);
  block.size = kRows;
  for (uint32_t i = 0; i < kRows; ++i) {
    block.label.push_back(static_cast<float>(i % 2));
    block.dense.push_back(static_cast<float>(i) / 2);
    block.dense.push_back(-static_cast<float>(i));
    for (Key key : {Key{i % 10}, Key{10 + 3 * i % 4}}) {
      block.sparse[0].keys.push_back(key);
      block.sparse[0].offsets.push_back(static_cast<uint32_t>(block.sparse[0].keys.size()));
    }
    block.sparse[1].keys.push_back(14 + 6 - i % 7);
    block.sparse[1].offsets.push_back(i + 1);
  }
  return block;
}

void ExpectSame(const SampleBlock& seen, const SampleBlock& expected) {
  EXPECT_EQ(seen.size, expected.size);
  EXPECT_EQ(seen.label, expected.label);
  EXPECT_EQ(seen.dense, expected.dense);
  for (size_t i = 0; i < expected.sparse.size(); ++i) {
    EXPECT_EQ(seen.sparse[i].offsets, expected.sparse[i].offsets);
    EXPECT_EQ(seen.sparse[i].keys, expected.sparse[i].keys);
  }
}

std::string ErrorOf(const ParquetOptions& options, absl::StatusCode code) {
  SampleBlock block;
  const absl::Status status = ReadAll(options, &block);
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_EQ(block.label.size(), block.size);
  for (size_t i = 0; i < block.sparse.size(); ++i) {
    EXPECT_EQ(block.sparse[i].offsets.size(), options.shape.slot_nums[i] * block.size + 1);
  }
  return std::string(status.message());
}

std::string ErrorOf(const std::string& name, absl::StatusCode code) {
  return ErrorOf(Options(Golden("bad/" + name)), code);
}

class ParquetKinds : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Golden, ParquetKinds,
                         testing::Values("good/plain", "good/required", "good/dictionary_snappy",
                                         "good/zstd_v2", "good/gzip_required", "good/delta",
                                         "good/types", "metadata/part_0"));

TEST_P(ParquetKinds, ReadsEverySampleInAnyStep) {
  const ParquetOptions options = Options(Golden(std::string(GetParam()) + ".parquet"));
  for (size_t step : {1, 3, 4, 5, 100}) {
    SampleBlock block;
    const absl::Status status = ReadAll(options, &block, step);
    ASSERT_TRUE(status.ok()) << status;
    ExpectSame(block, Expected());
  }
}

// Damaged files never make the reader crash, hang or return invalid keys.
TEST_P(ParquetKinds, DamageIsAnErrorOrChangesOnlyNumbers) {
  const std::string bytes = Contents(Golden(std::string(GetParam()) + ".parquet"));
  Scratch scratch;
  if (std::string(GetParam()) == "metadata/part_0") {
    scratch.Write("_metadata.json", Contents(Golden("metadata/_metadata.json")));
  }
  for (size_t i = 0; i < bytes.size(); i += 3) {
    for (const std::string& damaged :
         {bytes.substr(0, i), bytes.substr(0, i) + static_cast<char>(bytes[i] ^ (1 << (i % 8))) +
                                  bytes.substr(i + 1)}) {
      SampleBlock block;
      const absl::Status status =
          ReadAll(Options(scratch.Write("part_0.parquet", damaged)), &block);
      EXPECT_TRUE(!status.ok() || block.size <= kRows) << block.size;
      for (Key key : block.sparse[0].keys) ASSERT_LT(key, 14u);
    }
  }
}

TEST(Parquet, KeysAreNotOffsetWithoutSizes) {
  ParquetOptions options = Options(Golden("good/plain.parquet"));
  options.slot_sizes.clear();
  SampleBlock block;
  ASSERT_TRUE(ReadAll(options, &block).ok());
  EXPECT_EQ(block.sparse[0].keys[3], 3u);
  EXPECT_EQ(block.sparse[1].keys[0], 6u);
}

TEST(Parquet, SkipCrossesFilesAndRowGroups) {
  Scratch scratch;
  const std::string list =
      scratch.Write("list", absl::StrCat("2\n", Golden("good/plain.parquet"), "\n",
                                         Golden("good/zstd_v2.parquet"), "\n"));
  SampleBlock whole, block, lost;
  ASSERT_TRUE(ReadAll(Options(list), &whole).ok());
  ASSERT_EQ(whole.size, 2 * kRows);
  for (uint64_t skip = 0; skip <= 2 * kRows + 1; ++skip) {
    auto reader = OpenParquet(Options(list));
    ASSERT_TRUE(reader.ok());
    EXPECT_EQ(*(*reader)->Skip(skip, &lost), std::min<uint64_t>(skip, 2 * kRows));
    block.Reset(2);
    for (size_t n = 1; n > 0;) n = *(*reader)->Read(2, &block);
    ASSERT_EQ(block.size, 2 * kRows - std::min<uint64_t>(skip, 2 * kRows));
    EXPECT_EQ(block.label, std::vector<float>(whole.label.end() - block.size, whole.label.end()));
  }
}

TEST(Parquet, SkipsInsideARowGroupInEveryEncoding) {
  SampleBlock block, lost;
  for (const char* name :
       {"delta", "dictionary_snappy", "gzip_required", "plain", "required", "types", "zstd_v2"}) {
    const ParquetOptions options = Options(Golden(absl::StrCat("good/", name, ".parquet")));
    for (size_t read = 0; read <= 4; ++read) {
      for (size_t skip = 0; read + skip <= kRows; ++skip) {
        auto reader = OpenParquet(options);
        ASSERT_TRUE(reader.ok()) << reader.status();
        block.Reset(2);
        while (block.size < read) {
          ASSERT_GT((*reader)->Read(read - block.size, &block).value_or(0), 0u);
        }
        ASSERT_EQ((*reader)->Skip(skip, &lost).value_or(99), skip);
        block.Reset(2);
        for (size_t n = 1; n > 0;) n = (*reader)->Read(3, &block).value_or(0);
        SampleBlock rest;
        rest.Reset(2);
        rest.Append(Expected(), read + skip, kRows - read - skip);
        ExpectSame(block, rest);
      }
    }
  }
}

TEST(Parquet, StreamsAreRangesOfRowsInAnyRowGroup) {
  DataSetOptions options;
  options.format = DataFormat::kParquet;
  options.source = absl::StrCat(Golden("good/plain.parquet"), ",", Golden("good/zstd_v2.parquet"));
  options.shape = Options("").shape;
  options.slot_sizes = Options("").slot_sizes;
  SampleBlock whole, block;
  ASSERT_TRUE(ReadAll(Options(options.source), &whole).ok());
  for (const uint32_t wanted : {1, 3, 4, 6, 100}) {
    const auto streams = DataStreams::Divide(options, wanted);
    ASSERT_TRUE(streams.ok()) << streams.status();
    EXPECT_EQ(streams->size(), std::min(wanted, 20u));  // two files of 4, 4 and 2 rows
    block.Reset(2);
    for (uint32_t s = 0; s < streams->size(); ++s) {
      const auto reader = streams->Open(0, s);
      ASSERT_TRUE(reader.ok()) << reader.status();
      for (size_t n = 1; n > 0;) n = (*reader)->Read(3, &block).value_or(0);
    }
    ExpectSame(block, whole);
  }
}

TEST(Parquet, RefusesNullsAndBadValuesAndNamesTheirPlace) {
  EXPECT_THAT(ErrorOf("null.parquet", absl::StatusCode::kDataLoss),
              AllOf(HasSubstr("null.parquet: row group 1, row 2: column 'C2': is null"),
                    HasSubstr("fill")));
  EXPECT_THAT(ErrorOf("key.parquet", absl::StatusCode::kOutOfRange),
              AllOf(HasSubstr("key.parquet: row group 1, row 2: column 'C2': key 4 is outside"),
                    HasSubstr("slot_size_array[1]")));
  EXPECT_THAT(ErrorOf("negative_key.parquet", absl::StatusCode::kOutOfRange),
              HasSubstr("row group 2, row 1: column 'C1': key -1 is outside [0, 10)"));
  EXPECT_THAT(ErrorOf("nan.parquet", absl::StatusCode::kDataLoss),
              HasSubstr("row group 1, row 1: column 'I2': the dense feature is not a finite"));
}

TEST(Parquet, RefusesColumnsOfOtherTypes) {
  for (const char* name : {"text.parquet", "float_key.parquet", "time.parquet"}) {
    EXPECT_THAT(ErrorOf(name, absl::StatusCode::kInvalidArgument),
                AllOf(HasSubstr(name), HasSubstr("column 'C2' (number 4) is "),
                      HasSubstr("cast it to int64")));
  }
  EXPECT_THAT(ErrorOf("list.parquet", absl::StatusCode::kInvalidArgument),
              AllOf(HasSubstr("list.parquet: column 'C2"), HasSubstr("is nested")));
}

TEST(Parquet, RefusesAnotherNumberOfColumns) {
  EXPECT_THAT(ErrorOf("fewer.parquet", absl::StatusCode::kInvalidArgument),
              AllOf(HasSubstr("fewer.parquet has 5 columns (label, I1, I2, C1, C2)"),
                    HasSubstr("3 slots"), HasSubstr("_metadata.json")));
}

TEST(Parquet, RefusesAFileThatIsNotParquet) {
  Scratch scratch;
  EXPECT_THAT(ErrorOf(Options(scratch.Write("a.parquet", "PAR2 and nothing else")),
                      absl::StatusCode::kDataLoss),
              HasSubstr("a.parquet is corrupt, or not a Parquet file"));
}

TEST(Parquet, EveryTruncationIsCutShort) {
  Scratch scratch;
  const std::string bytes = Contents(Golden("good/plain.parquet"));
  for (size_t size = 0; size < bytes.size(); size += size < 16 ? 1 : 61) {
    // In a list, because a source of 0 bytes is refused before it is opened as Parquet.
    scratch.Write("a.parquet", bytes.substr(0, size));
    EXPECT_THAT(
        ErrorOf(Options(scratch.Write("list", "1\na.parquet\n")), absl::StatusCode::kDataLoss),
        AllOf(HasSubstr("a.parquet is cut short"), HasSubstr("copy it again")))
        << size;
  }
}

// label (float) 0, 1 and C1 (int64) 5, 6, from pyarrow 26.0.1 with write_page_checksum.
constexpr char kChecksummed[] =
    "UEFSMRUAFRAVEBXB18TzAhwVBBUAFQYVBhwAAAAAAAAAAACAPxUAFSAVIBWI/+yIChwVBBUAFQYVBhwAAAAFAAAA"
    "AAAAAAYAAAAAAAAAFQQZPDUAGAZzY2hlbWEVBAAVCCUAGAVsYWJlbAAVBCUAGAJDMQAWBBkcGSwmABwVCBklBgAZ"
    "GAVsYWJlbBUAFgQWQhZCJghJHBUAFQAVAgAAACYAHBUEGSUGABkYAkMxFQAWBBZSFlImSkkcFQAVABUCAAAAFpQB"
    "FgQmCBaUAQAoIHBhcnF1ZXQtY3BwLWFycm93IHZlcnNpb24gMjYuMC4xGSwcAAAcAAAAqwAAAFBBUjE=";

TEST(Parquet, AChecksumDetectsEveryFlippedBitOfAPage) {
  Scratch scratch;
  std::string bytes;
  ASSERT_TRUE(absl::Base64Unescape(kChecksummed, &bytes));
  ParquetOptions options = Options(scratch.Write("a.parquet", bytes));
  options.shape = {1, 0, {1}, {0}};
  options.slot_sizes = {10};
  SampleBlock block;
  const absl::Status whole = ReadAll(options, &block);
  ASSERT_TRUE(whole.ok()) << whole;
  EXPECT_EQ(block.sparse[0].keys, (std::vector<Key>{5, 6}));
  for (const size_t begin : {size_t{29}, size_t{62}}) {  // of the pages' values
    const size_t end = begin == 29 ? begin + 2 * sizeof(float) : begin + 2 * sizeof(Key);
    for (size_t i = begin; i < end; ++i) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ 2);
      options.source = scratch.Write("b.parquet", damaged);
      EXPECT_THAT(ErrorOf(options, absl::StatusCode::kDataLoss), HasSubstr("CRC checksum")) << i;
    }
  }
}

// plain.parquet with a page whose header requests 1.6 GB (found by fuzz/reader_fuzz_test).
TEST(Parquet, RefusesAPageThatRequestsMoreMemoryThanItsFileCouldNeed) {
  EXPECT_THAT(ErrorOf("huge_page.parquet", absl::StatusCode::kDataLoss),
              AllOf(HasSubstr("huge_page.parquet is corrupt: one of its pages requests"),
                    HasSubstr("64 MiB plus 1024 times the file size")));
}

TEST(Parquet, ACompressionThatArrowLacksIsTooNew) {
  Scratch scratch;
  std::string bytes;
  ASSERT_TRUE(absl::Base64Unescape(kChecksummed, &bytes));
  const size_t name = bytes.rfind(std::string("label\x15\0", 7));
  ASSERT_NE(name, std::string::npos);
  bytes[name + 6] = 6;  // the codec of the column: LZO, as a zigzag number
  ParquetOptions options = Options(scratch.Write("a.parquet", bytes));
  options.shape = {1, 0, {1}, {0}};
  options.slot_sizes = {10};
  EXPECT_THAT(ErrorOf(options, absl::StatusCode::kUnimplemented),
              AllOf(HasSubstr("a.parquet"), HasSubstr("LZO")));
}

// The error of a _metadata.json in which `to` replaces `from`.
std::string MetadataError(const std::string& from, const std::string& to,
                          absl::StatusCode code = absl::StatusCode::kDataLoss) {
  Scratch scratch;
  std::string metadata = Contents(Golden("metadata/_metadata.json"));
  const size_t at = metadata.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  metadata.replace(at, from.size(), to);
  scratch.Write("_metadata.json", metadata);
  return ErrorOf(
      Options(scratch.Write("part_0.parquet", Contents(Golden("metadata/part_0.parquet")))), code);
}

// With _metadata.json, as it is written, and without it.
TEST(Parquet, WeightsOfKeysAreColumnsOfNumbers) {
  const Scratch scratch;
  DataSetOptions options;
  options.format = DataFormat::kParquet;
  options.shape = {1, 0, {2, 1}, {}, false, {true, false}};
  options.slot_sizes = {10, 20, 30};
  SampleBlock block;
  block.Reset(2);
  block.size = 2;
  block.label = {1, 0};
  block.sparse[0] = {{0, 1, 2, 3, 4}, {5, 6, 7, 8}, {0.5f, -3, 1, 0}};
  block.sparse[1] = {{0, 1, 2}, {9, 10}, {}};
  const auto writer = CreateSampleSetWriter(Disk(), scratch.Path("."), options, 100);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->Append(block).ok());
  ASSERT_TRUE((*writer)->Close().ok());
  EXPECT_THAT(scratch.Read("_metadata.json"),
              HasSubstr(R"("weights":[{"col_name":"W1","index":4},{"col_name":"W2","index":5}])"));
  options.source = scratch.Path("part_0.parquet");
  for (const bool has_metadata : {true, false}) {
    if (!has_metadata) std::filesystem::remove(scratch.Path("_metadata.json"));
    const auto reader = OpenDataSet(options);
    ASSERT_TRUE(reader.ok()) << reader.status();
    SampleBlock seen;
    seen.Reset(2);
    ASSERT_TRUE((*reader)->Read(has_metadata ? 2 : 1, &seen).ok());
    ASSERT_TRUE((*reader)->Read(9, &seen).ok());
    EXPECT_EQ(seen.sparse[0].weights, block.sparse[0].weights);
    EXPECT_THAT(seen.sparse[0].keys, testing::ElementsAre(5, 16, 7, 18));
    EXPECT_THAT(seen.sparse[1].keys, testing::ElementsAre(39, 40));
    DataSetOptions without = options;
    without.shape.key_weights.clear();
    EXPECT_THAT(std::string(OpenDataSet(without).status().message()),
                has_metadata ? HasSubstr("weights names 2 columns, but the number of slots of "
                                         "cistern.key_weights of the model is 0")
                             : HasSubstr("has 6 columns"));
  }
  DataSetOptions more = options;
  more.shape.key_weights = {true, true};
  EXPECT_THAT(std::string(OpenDataSet(more).status().message()),
              HasSubstr("3 slots, and 3 of them with weights of keys (cistern.key_weights)"));
}

TEST(Parquet, RefusesMetadataThatContradictsTheFile) {
  EXPECT_THAT(MetadataError("\"C1\", \"index\": 4", "\"C1\", \"index\": 6"),
              AllOf(HasSubstr("_metadata.json: cats[0] names column 6 'C1'"),
                    HasSubstr("part_0.parquet it is 'C2'")));
  EXPECT_THAT(MetadataError("\"index\": 4", "\"index\": 7"), HasSubstr("has 7 columns"));
  EXPECT_THAT(MetadataError("\"num_rows\": 10", "\"num_rows\": 11"),
              HasSubstr("file_stats lists part_0.parquet with 11 rows, but the file has 10"));
  EXPECT_THAT(MetadataError("part_0.parquet", "part_9.parquet"),
              HasSubstr("_metadata.json: file_stats does not list part_0.parquet"));
  EXPECT_THAT(MetadataError("\"labels\"", "\"lables\"", absl::StatusCode::kInvalidArgument),
              HasSubstr("labels names 0 columns, but label_dim of the model is 1"));
  EXPECT_THAT(MetadataError("\"index\": 4", "\"index\": \"C1\""), HasSubstr("cats[0]: expected"));
  EXPECT_THAT(MetadataError("{", ""), HasSubstr("is not a JSON object"));
  EXPECT_THAT(MetadataError("[", std::string(100000, '[') + std::string(100000, ']') + ", "),
              HasSubstr("is not a JSON object"));
  EXPECT_THAT(MetadataError("\"index\": 4", "\"index\": 1"),
              HasSubstr("cats[0] names column 1 'C1'"));
  EXPECT_THAT(
      MetadataError("\"col_name\": \"C2\", \"index\": 6", "\"col_name\": \"C1\", \"index\": 4"),
      AllOf(HasSubstr("_metadata.json: cats[1] names column 4 ('C1')"),
            HasSubstr("which cats[0] already names")));
  EXPECT_THAT(MetadataError("\"col_name\": \"C2\", \"index\": 6", "\"index\": 3"),
              HasSubstr("cats[1] names column 3 ('label')"));
}

}  // namespace
}  // namespace cistern::data
