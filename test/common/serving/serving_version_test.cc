#include "common/serving/serving_version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "test/support/memory_file_system.h"

namespace cistern {
namespace {

using ::testing::ElementsAre;

ServingVersion Example(const std::string& folder = "0000000042") {
  ServingVersion version;
  version.folder = folder;
  version.name = "deepfm";
  version.commit = 42;
  version.manifest_xxh3 = ~uint64_t{0};
  version.pass = 41;
  version.precision = RowPrecision::kInt8;
  version.model = {folder + "/model.json", 10, 1};
  version.overrides = {"solver.seed=3", "layers.data.source=\"a b\""};
  version.dense = {folder + "/dense.bin", 20, 2};
  version.dense_tables = {{"dense", 5}};
  version.tables = {{"deep",
                     16,
                     1000,
                     77,
                     {{"0000000040/rows-000.rows", 30, 3}, {folder + "/rows-000.rows", 31, 4}},
                     uint64_t{76}}};
  return version;
}

void Put(FileSystem& files, const std::string& path, const std::string& text) {
  ASSERT_TRUE(files.MakeFolders(ParentFolder(path)).ok());
  files.Remove(path).IgnoreError();
  const auto file = files.Create(path).value();
  ASSERT_TRUE(file->Append(text).ok() && file->Sync().ok() && file->Close().ok());
}

TEST(ServingVersion, ReadsBackWhatItWrites) {
  const std::string text = FormatVersion(Example());
  const ServingVersion read = ParseVersion(text).value();
  EXPECT_EQ(FormatVersion(read), text);
  EXPECT_EQ(read.tables[0].layers, Example().tables[0].layers);
  EXPECT_EQ(read.tables[0].base_digest, 76u);
  EXPECT_EQ(read.overrides, Example().overrides);
  EXPECT_EQ(read.manifest_xxh3, ~uint64_t{0});
}

TEST(ServingVersion, AnyFlippedBitIsNoticed) {
  const std::string text = FormatVersion(Example());
  const std::string members = text.substr(0, text.find("\"self_xxh3\""));
  for (size_t bit = 0; bit < members.size() * 8; ++bit) {
    std::string flipped = text;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_TRUE(absl::IsDataLoss(ParseVersion(flipped).status())) << flipped;
  }
}

TEST(ServingVersion, ATruncatedTextIsRefused) {
  const std::string text = FormatVersion(Example());
  for (size_t size = 0; size + 1 < text.size(); ++size) {
    EXPECT_FALSE(ParseVersion(text.substr(0, size)).ok()) << size;
  }
}

TEST(ServingVersion, APathThatLeavesTheFolderIsRefused) {
  for (const char* const path : {"../x/y", "a/../b", "/etc/passwd", "a", "a/b/c", ".a/b", ""}) {
    ServingVersion version = Example();
    version.dense.path = path;
    EXPECT_TRUE(absl::IsDataLoss(ParseVersion(FormatVersion(version)).status())) << path;
    version = Example();
    version.tables[0].layers[1].path = path;
    EXPECT_TRUE(absl::IsDataLoss(ParseVersion(FormatVersion(version)).status())) << path;
  }
}

TEST(ServingVersion, HeadNamesAVersionAndItsHash) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.MakeFolders("s").ok());
  EXPECT_TRUE(absl::IsNotFound(ReadHead(files, "s").status()));
  ASSERT_TRUE(WriteHead(files, "s", {"0000000042", 7}).ok());
  EXPECT_EQ(*ReadHead(files, "s"), (ServingHead{"0000000042", 7}));
  for (const char* const bad :
       {"", "{}", "[1]", "{\"version\":\"..\",\"xxh3\":\"0000000000000007\"}",
        "{\"version\":\"a\",\"xxh3\":\"7\"}"}) {
    Put(files, "s/HEAD", bad);
    EXPECT_TRUE(absl::IsDataLoss(ReadHead(files, "s").status())) << bad;
  }
}

TEST(ServingVersion, OnlyTheTextThatHeadNamesIsRead) {
  MemoryFileSystem files;
  Put(files, "s/0000000042/serving.json", FormatVersion(Example()));
  const ServingHead head = HeadOf(files, "s", "0000000042").value();
  EXPECT_TRUE(ReadVersion(files, "s", head.folder, head.xxh3).ok());
  EXPECT_TRUE(absl::IsDataLoss(ReadVersion(files, "s", head.folder, head.xxh3 + 1).status()));
  Put(files, "s/0000000043/serving.json", FormatVersion(Example()));  // of another folder
  EXPECT_TRUE(absl::IsDataLoss(ReadVersion(files, "s", "0000000043", 0).status()));
}

TEST(ServingVersion, KeepsWhatTheCurrentVersionUses) {
  MemoryFileSystem files;
  for (const char* const folder : {"0000000039", "0000000040", "0000000041", "0000000042"}) {
    ServingVersion version = Example(folder);
    if (version.folder < "0000000042")
      version.tables[0].layers.erase(version.tables[0].layers.begin());
    Put(files, absl::StrCat("s/", folder, "/serving.json"), FormatVersion(version));
    Put(files, absl::StrCat("s/", folder, "/rows-000.rows"), "rows");
  }
  ASSERT_TRUE(WriteHead(files, "s", HeadOf(files, "s", "0000000042").value()).ok());
  ASSERT_TRUE(RemoveOldVersions(files, "s", 1).ok());
  EXPECT_THAT(*VersionsIn(files, "s"), ElementsAre("0000000040", "0000000042"));
}

}  // namespace
}  // namespace cistern
