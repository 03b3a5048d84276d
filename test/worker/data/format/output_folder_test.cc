#include "worker/data/format/output_folder.h"

#include <gmock/gmock.h>

#include "test/worker/data/scratch.h"

namespace cistern::data {
namespace {

using testing::HasSubstr;

std::string MessageOf(const absl::Status& status) {
  return std::string(status.message());
}

TEST(OutputFolder, AppearsWholeWithPublish) {
  Scratch scratch;
  LocalFileSystem files;
  auto folder = OutputFolder::Create(files, scratch.Path("out/"), false);
  ASSERT_TRUE(folder.ok()) << folder.status();
  const absl::StatusOr<std::string> train = (*folder)->Subfolder("train");
  ASSERT_TRUE(train.ok()) << train.status();
  std::ofstream(*train + "/file_list.txt") << "0\n";
  EXPECT_FALSE(std::filesystem::exists(scratch.Path("out")));
  ASSERT_TRUE((*folder)->Publish().ok());
  folder->reset();
  EXPECT_EQ(scratch.Read("out/train/file_list.txt"), "0\n");
  EXPECT_FALSE(std::filesystem::exists(scratch.Path("out.partial-set")));
}

TEST(OutputFolder, LeavesNothingWithoutPublish) {
  Scratch scratch;
  LocalFileSystem files;
  ASSERT_TRUE(OutputFolder::Create(files, scratch.Path("out"), false).value()->Subfolder("a").ok());
  EXPECT_TRUE(std::filesystem::is_empty(scratch.Path("")));
}

TEST(OutputFolder, ReplacesADataSetWithOverwriteAlone) {
  Scratch scratch;
  LocalFileSystem files;
  scratch.Write("out/train/file_list.txt", "old");
  EXPECT_THAT(MessageOf(OutputFolder::Create(files, scratch.Path("out"), false).status()),
              HasSubstr("overwrite it"));
  auto folder = OutputFolder::Create(files, scratch.Path("out"), true);
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(scratch.Read("out/train/file_list.txt"), "old");
  ASSERT_TRUE((*folder)->Publish().ok());
  EXPECT_TRUE(std::filesystem::is_empty(scratch.Path("out")));
}

TEST(OutputFolder, NeverReplacesWhatIsNoDataSet) {
  Scratch scratch;
  scratch.Write("out/thesis.txt", "years of work");
  EXPECT_THAT(MessageOf(OutputFolder::Check(scratch.Path("out"), true)),
              HasSubstr("is not a data set"));
}

TEST(OutputFolder, NeverReplacesTheFilesItIsMadeFrom) {
  Scratch scratch;
  const std::string input = scratch.Write("out/train/part.norm", "x");
  EXPECT_THAT(MessageOf(OutputFolder::CheckSpares(scratch.Path("out"), {input})),
              HasSubstr("name another folder"));
  EXPECT_TRUE(OutputFolder::CheckSpares(scratch.Path("other"), {input}).ok());
}

TEST(OutputFolder, IsOneProcessesAtATime) {
  Scratch scratch;
  LocalFileSystem files;
  const auto first = OutputFolder::Create(files, scratch.Path("out"), false);
  ASSERT_TRUE(first.ok());
  EXPECT_THAT(MessageOf(OutputFolder::Create(files, scratch.Path("out"), false).status()),
              HasSubstr("another process"));
}

}  // namespace
}  // namespace cistern::data
