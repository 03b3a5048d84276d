#include "worker/export/xbox/sequence_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/memory_file_system.h"
#include "test/support/temp_folder.h"

namespace cistern {
namespace {

const SequenceFormat kCube = {SequenceForm::kCube, SequenceCompression::kNone};
const SequenceFormat kHadoop = {SequenceForm::kHadoop, SequenceCompression::kNone};

// The rows of the golden files: row i has the key i * i as 8 bytes and a value of 3 * (i % 20)
// bytes, all i. sequence_file_golden_test.py knows them too.
std::string SampleBytes(const SequenceFormat& format, size_t rows) {
  MemoryFileSystem files;
  auto writer = SequenceFileWriter::Create(files, "out/f", format, "0123456789abcdef").value();
  for (size_t i = 0; i < rows; ++i) {
    const uint64_t key = i * i;
    const std::string value(3 * (i % 20), static_cast<char>(i));
    EXPECT_TRUE(writer->Append({reinterpret_cast<const char*>(&key), sizeof(key)}, value).ok());
  }
  EXPECT_TRUE(writer->Close().ok());
  EXPECT_EQ(writer->rows(), rows);
  const std::string bytes = ReadWhole(files, "out/f", 1 << 30).value();
  EXPECT_EQ(writer->bytes(), bytes.size());
  return bytes;
}

std::string Golden(const std::string& name) {
  return ReadBytes(absl::StrCat(CISTERN_SOURCE_DIR, "/test/golden/sequence_file/", name));
}

TEST(SequenceFile, CubeBytesAreThoseOfTheFormat) {
  EXPECT_TRUE(SampleBytes(kCube, 150) == Golden("cube"));
}

TEST(SequenceFile, HadoopBytesAreThoseOfTheFormat) {
  EXPECT_TRUE(SampleBytes(kHadoop, 150) == Golden("hadoop"));
}

TEST(SequenceFile, HeaderIsThatOfPaddleServing) {
  const std::string name = "\"org.apache.hadoop.io.BytesWritable";
  EXPECT_EQ(SampleBytes(kCube, 0),
            "SEQ\x06" + name + name + std::string(6, '\0') + "0123456789abcdef");
}

// A record holds 8 + 8 + its value's bytes. 2,000 bytes of keys and values precede a marker.
TEST(SequenceFile, AMarkerFollows2000BytesButNeverEndsAFile) {
  MemoryFileSystem files;
  const size_t header = SampleBytes(kCube, 0).size();
  for (const auto& [records, markers] :
       std::map<size_t, size_t>{{19, 0}, {20, 0}, {21, 1}, {40, 1}, {41, 2}}) {
    auto writer = SequenceFileWriter::Create(files, "out/f", kCube, "0123456789abcdef").value();
    for (size_t i = 0; i < records; ++i) {
      ASSERT_TRUE(writer->Append("12345678", std::string(92, 'x')).ok());
    }
    ASSERT_TRUE(writer->Close().ok());
    EXPECT_EQ(writer->bytes(), header + records * 108 + markers * 20) << records;
  }
}

TEST(SequenceFile, CompressedBytesAreSmallerAndRepeatable) {
  for (const auto compression : {SequenceCompression::kRecord, SequenceCompression::kBlock}) {
    const SequenceFormat format = {SequenceForm::kHadoop, compression};
    const std::string bytes = SampleBytes(format, 5000);
    EXPECT_LT(bytes.size(), SampleBytes(kHadoop, 5000).size());
    EXPECT_TRUE(bytes == SampleBytes(format, 5000));
  }
}

TEST(SequenceFile, CubeCannotBeCompressed) {
  for (const auto compression : {SequenceCompression::kRecord, SequenceCompression::kBlock}) {
    EXPECT_EQ(CheckFormat({SequenceForm::kCube, compression}).code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_TRUE(CheckFormat(kCube).ok());
}

}  // namespace
}  // namespace cistern
