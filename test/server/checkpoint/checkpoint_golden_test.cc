// Golden: the bytes under test/golden define the formats. A change that fails here needs a new
// version, and a reader for the old one.
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "test/server/checkpoint/manifest_sample.h"
#include "test/support/temp_folder.h"

namespace cistern::server {
namespace {

constexpr char kGolden[] = CISTERN_SOURCE_DIR "/test/golden";

std::string GoldenBytes(const std::string& name) {
  return ReadBytes(absl::StrCat(kGolden, "/", name));
}

TEST(Golden, WritesTheRowFileOfTheFormat) {
  TempFolder folder;
  ASSERT_TRUE(WriteSample(Disk(), folder.path(), "row_file_v1").ok());
  EXPECT_TRUE(ReadBytes(folder / "row_file_v1") == GoldenBytes("row_file_v1"));
}

TEST(Golden, WritesTheIndexedRowFileOfTheFormat) {
  TempFolder folder;
  RowFileHeader header = SampleHeader();
  header.indexed = true;
  ASSERT_TRUE(WriteSample(Disk(), folder.path(), "row_file_indexed_v1", header).ok());
  EXPECT_TRUE(ReadBytes(folder / "row_file_indexed_v1") == GoldenBytes("row_file_indexed_v1"));
}

TEST(Golden, ReadsTheRowFile) {
  v1::RowFile file;
  file.set_name("row_file_indexed_v1");
  EXPECT_TRUE(ReadEverything(Disk(), kGolden, file).ok());
  file.set_name("row_file_v1");
  EXPECT_TRUE(ReadEverything(Disk(), kGolden, file).ok());
  const auto reader = RowFileReader::Open(Disk(), kGolden, file).value();
  const ValueLayout layout = SampleLayout(1);
  EXPECT_EQ(ReadSparseRows(*reader, *reader->FindSparse(1, 3), layout).value(),
            SampleRows(layout, 3, 6));
}

TEST(Golden, WritesTheManifestOfTheFormat) {
  EXPECT_EQ(FormatManifest(SampleManifest()), GoldenBytes("manifest_v1"));
}

TEST(Golden, ReadsTheManifest) {
  const auto parsed = ParseManifest(GoldenBytes("manifest_v1")).value();
  EXPECT_TRUE(
      google::protobuf::util::MessageDifferencer::Equals(parsed.manifest, SampleManifest()));
}

}  // namespace
}  // namespace cistern::server
