// Files that are compressed, and sources that are patterns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include "common/io/gzip.h"
#include "test/worker/data/scratch.h"
#include "worker/data/format/file_list.h"
#include "worker/data/format/sample_reader.h"

namespace cistern::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr size_t kCompressedRecords = 5000;

std::string Gzip(const std::string& bytes) {
  std::string out;
  GzipWriter writer;
  writer.Append(bytes, &out);
  writer.Finish(&out);
  return out;
}

std::string Zstd(const std::string& bytes) {
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 3));
  return out;
}

std::string NormBytes() {
  std::string bytes = NormRecordBytes(true, NormHeaderBytes(true, kCompressedRecords, 1, 0, 1));
  for (size_t i = 0; i < kCompressedRecords; ++i) {
    bytes += NormRecordBytes(true, NormSampleBytes(true, {static_cast<float>(i)}, {{i, 7}}));
  }
  return bytes;
}

NormOptions Options(const std::string& source) {
  NormOptions options;
  options.source = source;
  options.check = NormCheck::kSum;
  options.wide_keys = true;
  options.shape = {1, 0, {1}, {0}};
  return options;
}

// The labels from sample `skip` to the end, and the first error.
absl::StatusOr<std::vector<float>> LabelsFrom(const std::string& source, uint64_t skip) {
  CISTERN_ASSIGN_OR_RETURN(const auto reader, OpenNorm(Options(source)));
  SampleBlock block;
  block.Reset(1);
  CISTERN_RETURN_IF_ERROR(reader->Skip(skip, &block).status());
  block.Reset(1);
  while (true) {
    CISTERN_ASSIGN_OR_RETURN(const size_t got, reader->Read(100, &block));
    if (got == 0) return block.label;
  }
}

TEST(Compressed, NormFilesReadAsTheirContentsFromAnyPlace) {
  const Scratch scratch;
  const std::string bytes = NormBytes();
  const std::string plain = scratch.Write("plain.norm", bytes);
  // The name does not matter; lists are unpacked too.
  scratch.Write("a.norm", Gzip(bytes));
  scratch.Write("b.gz", Zstd(bytes));
  const std::string list = scratch.Write("list", Zstd("2\na.norm\nb.gz\n"));
  for (const uint64_t skip : {0, 1, 4999, 5000, 7777, 10000}) {
    const auto expected = LabelsFrom(plain + "," + plain, skip);
    ASSERT_TRUE(expected.ok()) << expected.status();
    const auto labels = LabelsFrom(list, skip);
    ASSERT_TRUE(labels.ok()) << labels.status();
    EXPECT_EQ(*labels, *expected) << skip;
  }
}

TEST(Compressed, ATruncatedNormFileNamesFileAndByte) {
  const Scratch scratch;
  for (const std::string& packed : {Gzip(NormBytes()), Zstd(NormBytes())}) {
    const size_t half = packed.size() / 2;
    const auto labels = LabelsFrom(scratch.Write("a.norm", packed.substr(0, half)), 0);
    ASSERT_EQ(labels.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(labels.status().message()),
                AllOf(HasSubstr("a.norm"), HasSubstr("cut short"),
                      HasSubstr(absl::StrCat("at byte ", half, " of the file"))));
  }
}

TEST(Sources, FilesOfACommaListAreItsParts) {
  EXPECT_THAT(FilesOfSource("no/a.norm, file:///no/b.norm,c"),
              ElementsAre("no/a.norm", "/no/b.norm", "c"));
}

TEST(Sources, PatternsNameFilesInOrder) {
  const Scratch scratch;
  for (const char* name : {"10_500/d-00.tar", "10_500/d-01.tar", "500_800/d-00.tar", "{x}.tar"}) {
    scratch.Write(name, std::string(64, '\0'));
  }
  const std::string folder = scratch.Path("");
  EXPECT_THAT(*ReadFileList(folder + "{10_500,500_800}/d-*.tar"),
              ElementsAre(folder + "10_500/d-00.tar", folder + "10_500/d-01.tar",
                          folder + "500_800/d-00.tar"));
  EXPECT_THAT(*ReadFileList(absl::StrCat(folder, "500_800/d-00.tar, file://", folder, "10_500/*")),
              ElementsAre(folder + "500_800/d-00.tar", folder + "10_500/d-00.tar",
                          folder + "10_500/d-01.tar"));
  EXPECT_THAT(*ReadFileList(folder + "10_500/d-{00..01}.tar"),
              ElementsAre(folder + "10_500/d-00.tar", folder + "10_500/d-01.tar"));
  // A file of exactly this name is not a pattern.
  EXPECT_THAT(*ReadFileList(folder + "{x}.tar"), ElementsAre(folder + "{x}.tar"));
  EXPECT_EQ(ReadFileList(folder + "no-*.tar").status().code(), absl::StatusCode::kNotFound);
}

// The first 64 bytes of this shard could begin a file list.
TEST(Source, AShardWithALongNameOfDigitsIsNotAFileList) {
  const Scratch scratch;
  std::string shard(2048, '\0');
  shard.replace(0, 80, std::string(80, '7'));
  const std::string path = scratch.Write("a.tar", shard);
  const auto files = ReadFileList(path);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(*files, ElementsAre(path));
}

// Magic numbers: Arrow's, ORC's, Avro's, HDF5's, SQLite's and NumPy's formats, PEP 307.
TEST(BinaryHint, NamesFilesOfOtherTools) {
  const auto bytes = [](absl::string_view begin) {
    return std::string(begin) + std::string(8, '\0');
  };
  EXPECT_THAT(BinaryHint(bytes("ARROW1")), HasSubstr("Feather"));
  EXPECT_THAT(BinaryHint(bytes("FEA1")), HasSubstr("Feather"));
  EXPECT_THAT(BinaryHint(bytes("ORC")), HasSubstr("ORC"));
  EXPECT_THAT(BinaryHint(bytes("Obj\x01")), HasSubstr("Avro"));
  EXPECT_THAT(BinaryHint(bytes("\x89HDF\r\n\x1a\n")), HasSubstr("HDF5"));
  EXPECT_THAT(BinaryHint(bytes("SQLite format 3")), HasSubstr("SQLite"));
  EXPECT_THAT(BinaryHint(bytes("\x93NUMPY\x01")), HasSubstr("NumPy"));
  EXPECT_THAT(BinaryHint(bytes("\x80\x04\x95")), HasSubstr("pickle"));
  EXPECT_THAT(BinaryHint(bytes("\x04\x22\x4d\x18")), HasSubstr("lz4"));
  EXPECT_THAT(BinaryHint(bytes("7z\xbc\xaf\x27\x1c")), HasSubstr("archive"));
  EXPECT_THAT(BinaryHint(bytes("Rar!\x1a\x07")), HasSubstr("archive"));
  for (const char* const text : {"ORC,label\n1,0\n", "ARROW1;a\n", "FEA1,FEA2\n", "Object,a\n"}) {
    EXPECT_EQ(BinaryHint(text), "") << text;
  }
}

}  // namespace
}  // namespace cistern::data
