// Which commit a saved model was saved from: told inside, beside, or not at all.
#include "common/saved_model/saved_commit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/saved_model/model_part_json.h"
#include "test/support/memory_file_system.h"

namespace cistern {
namespace {

using ::testing::HasSubstr;

constexpr SavedCommit kCommit = {24, 0xabc};

// A model of one dense table that was never written, so that no other files are needed.
ModelPart PartOf(uint32_t server, uint32_t server_num, const SavedCommit& commit = {}) {
  ModelPart part;
  part.server = server;
  part.server_num = server_num;
  part.pass = 7;
  part.commit = commit.number;
  part.manifest_xxh3 = commit.manifest_xxh3;
  v1::DenseTableSpec* const dense = part.schema.add_dense_tables();
  dense->set_name("dense");
  dense->set_rows(3);
  dense->add_columns("w");
  return part;
}

class SavedCommitTest : public testing::Test {
 protected:
  void Write(const ModelPart& part, const std::string& folder = "run/model") {
    ASSERT_TRUE(files_.MakeFolders(folder).ok());
    const absl::Status written = WritePart(files_, folder, part);
    ASSERT_TRUE(written.ok()) << written;
  }
  SavedCommit Read(const std::string& folder = "run/model") {
    const auto parts = ReadParts(files_, folder);
    EXPECT_TRUE(parts.ok()) << parts.status();
    return parts.ok() ? CommitOfModel(files_, folder, *parts) : SavedCommit();
  }

  MemoryFileSystem files_;
};

TEST_F(SavedCommitTest, AnOldModelTellsNone) {
  Write(PartOf(0, 1));
  EXPECT_EQ(Read(), SavedCommit());
}

TEST_F(SavedCommitTest, PartsTellTheCommit) {
  EXPECT_THAT(FormatPart(PartOf(1, 2, kCommit)),
              HasSubstr("\"pass\": 7, \"commit\": 24, \"manifest_xxh3\": \"0000000000000abc\",\n"));
  Write(PartOf(0, 2, kCommit));
  Write(PartOf(1, 2, kCommit));
  EXPECT_EQ(Read(), kCommit);
}

TEST_F(SavedCommitTest, APartOfAnOlderProgramLeavesTheCommitUnknown) {
  Write(PartOf(0, 2, kCommit));
  Write(PartOf(1, 2));
  EXPECT_EQ(Read(), SavedCommit());
}

TEST_F(SavedCommitTest, PartsOfTwoCommitsAreNoModel) {
  for (const SavedCommit other : {SavedCommit{25, 0xabc}, SavedCommit{24, 0xabd}}) {
    const std::string folder = absl::StrCat("run/", other.number);
    Write(PartOf(0, 2, kCommit), folder);
    Write(PartOf(1, 2, other), folder);
    const absl::Status read = ReadParts(files_, folder).status();
    EXPECT_TRUE(absl::IsDataLoss(read)) << read;
    EXPECT_THAT(std::string(read.message()), HasSubstr("the commit is 24 versus"));
  }
}

TEST_F(SavedCommitTest, AMalformedCommitIsRefused) {
  std::string text = FormatPart(PartOf(0, 1, kCommit));
  text.replace(text.find("24"), 2, "-4");
  EXPECT_FALSE(ParsePart(text).ok());
}

TEST_F(SavedCommitTest, TheFileBesideTellsTheCommitOfItsModelOnly) {
  const ModelPart part = PartOf(0, 1);
  Write(part);
  ASSERT_TRUE(WriteCommitBeside(files_, "run/model", part, kCommit).ok());
  EXPECT_EQ(Read(), kCommit);
  EXPECT_EQ(FormatPart(ReadParts(files_, "run/model")->front()), FormatPart(part));  // unchanged

  ASSERT_TRUE(CopyCommitBeside(files_, "run/model", "run/copy").ok());
  Write(part, "run/copy");
  EXPECT_EQ(Read("run/copy"), kCommit);

  ModelPart other = part;
  other.pass = 8;
  ASSERT_TRUE(WriteCommitBeside(files_, "run/model", other, kCommit).ok());
  EXPECT_EQ(Read(), SavedCommit());
}

TEST_F(SavedCommitTest, ASaveWithoutACommitRemovesTheFileBeside) {
  const ModelPart part = PartOf(0, 1);
  Write(part);
  ASSERT_TRUE(WriteCommitBeside(files_, "run/model", part, kCommit).ok());
  ASSERT_TRUE(WriteCommitBeside(files_, "run/model", part, {}).ok());
  EXPECT_EQ(Read(), SavedCommit());
  EXPECT_FALSE(*files_.Exists("run/model.commit.json"));

  ASSERT_TRUE(WriteCommitBeside(files_, "run/copy", part, kCommit).ok());
  ASSERT_TRUE(CopyCommitBeside(files_, "run/model", "run/copy").ok());
  EXPECT_FALSE(*files_.Exists("run/copy.commit.json"));
}

TEST_F(SavedCommitTest, RowsThatAreNotThoseOfTheCommitTellNone) {
  ModelPart part = PartOf(0, 1, kCommit);
  part.mode = v1::BASE;
  Write(part, "base");
  EXPECT_EQ(Read("base"), SavedCommit());
  part.mode = v1::ALL;
  part.format.set_six_digits(true);
  Write(part, "rounded");
  EXPECT_EQ(Read("rounded"), SavedCommit());
  part.format.set_six_digits(false);
  Write(part, "all");
  EXPECT_EQ(Read("all"), kCommit);
}

}  // namespace
}  // namespace cistern
