// Rules that hold for both the local file system and the one in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "common/io/file_system.h"
#include "test/support/memory_file_system.h"
#include "test/support/temp_folder.h"

namespace cistern {
namespace {

using ::testing::ElementsAre;
using Code = absl::StatusCode;

template <typename Files>
class FileSystemRules : public testing::Test {
 protected:
  FileSystemRules() { EXPECT_TRUE(files_.MakeFolders(folder_.path()).ok()); }

  std::string At(const std::string& name) const { return folder_ / name; }

  void Write(const std::string& name, const std::string& bytes) {
    const auto file = files_.Create(At(name));
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Append(bytes).ok());
    ASSERT_TRUE((*file)->Sync().ok());
    ASSERT_TRUE((*file)->Close().ok());
  }

  std::string Read(const std::string& name) {
    return ReadWhole(files_, At(name), 1 << 20).value_or("nothing");
  }

  TempFolder folder_;
  Files files_;
};

using Implementations = testing::Types<LocalFileSystem, MemoryFileSystem>;
TYPED_TEST_SUITE(FileSystemRules, Implementations);

TYPED_TEST(FileSystemRules, FilesAreCreatedOnceAndReadInParts) {
  this->Write("a", "hello");
  EXPECT_EQ(this->Read("a"), "hello");
  EXPECT_EQ(this->files_.Create(this->At("a")).status().code(), Code::kAlreadyExists);
  const auto file = this->files_.Open(this->At("a")).value();
  char bytes[3];
  ASSERT_TRUE(file->Read(2, 3, bytes).ok());
  EXPECT_EQ(std::string(bytes, 3), "llo");
  EXPECT_EQ(file->Read(3, 3, bytes).code(), Code::kDataLoss);
}

TYPED_TEST(FileSystemRules, AppendedBytesCanBeOverwrittenInPlace) {
  const auto file = this->files_.Create(this->At("a")).value();
  ASSERT_TRUE(file->Append("count=? ").ok());
  ASSERT_TRUE(file->WriteAt(6, "7").ok());
  ASSERT_TRUE(file->Append("rows").ok());
  ASSERT_TRUE(file->WriteAt(8, "Rows").ok());
  ASSERT_TRUE(file->Close().ok());
  EXPECT_EQ(this->Read("a"), "count=7 Rows");
  EXPECT_EQ(file->WriteAt(0, "x").code(), Code::kFailedPrecondition);
}

TYPED_TEST(FileSystemRules, ClosedFileRefusesEveryCall) {
  const auto file = this->files_.Create(this->At("a")).value();
  ASSERT_TRUE(file->Close().ok());
  EXPECT_EQ(file->Append("x").code(), Code::kFailedPrecondition);
  EXPECT_EQ(file->Sync().code(), Code::kFailedPrecondition);
  EXPECT_EQ(file->Close().code(), Code::kFailedPrecondition);
}

TYPED_TEST(FileSystemRules, MissingNamesAreNotFound) {
  for (const char* name : {"absent", "absent/a"}) {
    const std::string path = this->At(name);
    EXPECT_EQ(this->files_.Open(path).status().code(), Code::kNotFound) << name;
    EXPECT_EQ(this->files_.Remove(path).code(), Code::kNotFound) << name;
    EXPECT_EQ(this->files_.SyncFolder(path).code(), Code::kNotFound) << name;
    EXPECT_EQ(this->files_.List(path).status().code(), Code::kNotFound) << name;
    EXPECT_EQ(this->files_.Publish(path, path + "b").code(), Code::kNotFound) << name;
    EXPECT_EQ(this->files_.Replace(path, path + "b").code(), Code::kNotFound) << name;
    EXPECT_FALSE(this->files_.Exists(path).value()) << name;
  }
  EXPECT_EQ(this->files_.Create(this->At("absent/a")).status().code(), Code::kNotFound);
}

TYPED_TEST(FileSystemRules, FilesAndFoldersAreNotInterchangeable) {
  this->Write("a", "1");
  ASSERT_TRUE(this->files_.MakeFolders(this->At("t")).ok());
  EXPECT_EQ(this->files_.Open(this->At("t")).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(this->files_.Open(this->At("a/b")).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(this->files_.Create(this->At("a/b")).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(this->files_.List(this->At("a")).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(this->files_.SyncFolder(this->At("a")).code(), Code::kInvalidArgument);
  EXPECT_EQ(this->files_.MakeFolders(this->At("a/b")).code(), Code::kInvalidArgument);
  EXPECT_EQ(this->files_.Create(this->At("")).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(this->files_.Replace(this->At("a"), this->At("t")).code(), Code::kInvalidArgument);
  EXPECT_EQ(this->files_.Replace(this->At("t"), this->At("a")).code(), Code::kInvalidArgument);
}

TYPED_TEST(FileSystemRules, PublishNeverReplacesAndReplaceAlwaysDoes) {
  this->Write("new", "2");
  this->Write("a", "1");
  EXPECT_EQ(this->files_.Publish(this->At("new"), this->At("a")).code(), Code::kAlreadyExists);
  EXPECT_EQ(this->Read("a"), "1");
  EXPECT_EQ(this->Read("new"), "2");
  ASSERT_TRUE(this->files_.Replace(this->At("new"), this->At("a")).ok());
  EXPECT_EQ(this->Read("a"), "2");
  EXPECT_FALSE(this->files_.Exists(this->At("new")).value());
  ASSERT_TRUE(this->files_.Publish(this->At("a"), this->At("b")).ok());
  EXPECT_EQ(this->Read("b"), "2");
  EXPECT_FALSE(this->files_.Exists(this->At("a")).value());
}

TYPED_TEST(FileSystemRules, RenamedFolderKeepsItsContents) {
  ASSERT_TRUE(this->files_.MakeFolders(this->At("t/u")).ok());
  this->Write("t/u/a", "1");
  ASSERT_TRUE(this->files_.Replace(this->At("t"), this->At("s")).ok());
  EXPECT_EQ(this->Read("s/u/a"), "1");
  ASSERT_TRUE(this->files_.MakeFolders(this->At("t")).ok());
  EXPECT_FALSE(this->files_.Replace(this->At("t"), this->At("s")).ok());  // "s" is not empty
  EXPECT_EQ(this->files_.Replace(this->At("s/u/a"), this->At("a")).code(), Code::kInvalidArgument);
}

TYPED_TEST(FileSystemRules, FoldersAreListedAndRemovedWhenEmpty) {
  ASSERT_TRUE(this->files_.MakeFolders(this->At("t")).ok());
  ASSERT_TRUE(this->files_.MakeFolders(this->At("t")).ok());
  this->Write("t/b", "1");
  this->Write("t/a", "1");
  EXPECT_THAT(this->files_.List(this->At("t")).value(), ElementsAre("a", "b"));
  EXPECT_FALSE(this->files_.Remove(this->At("t")).ok());
  ASSERT_TRUE(this->files_.Remove(this->At("t/a")).ok());
  ASSERT_TRUE(this->files_.Remove(this->At("t/b")).ok());
  ASSERT_TRUE(this->files_.Remove(this->At("t")).ok());
  EXPECT_FALSE(this->files_.Exists(this->At("t")).value());
}

TYPED_TEST(FileSystemRules, TreesAreRemovedCompletely) {
  ASSERT_TRUE(this->files_.MakeFolders(this->At("t/u/v")).ok());
  this->Write("t/a", "1");
  this->Write("t/u/b", "1");
  this->Write("b", "1");
  ASSERT_TRUE(RemoveTree(this->files_, this->At("t")).ok());
  ASSERT_TRUE(RemoveTree(this->files_, this->At("t")).ok());
  EXPECT_THAT(this->files_.List(this->folder_.path()).value(), ElementsAre("b"));
  ASSERT_TRUE(RemoveTree(this->files_, this->At("b")).ok());
  EXPECT_FALSE(this->files_.Exists(this->At("b")).value());
}

TYPED_TEST(FileSystemRules, LockHasOneHolder) {
  auto lock = this->files_.Lock(this->At("lock"));
  ASSERT_TRUE(lock.ok()) << lock.status();
  EXPECT_EQ(this->files_.Lock(this->At("lock")).status().code(), Code::kFailedPrecondition);
  lock->reset();
  EXPECT_TRUE(this->files_.Lock(this->At("lock")).ok());
}

TEST(RemoveTree, DoesNotFollowLinks) {
  TempFolder folder, outside;
  LocalFileSystem files;
  WriteBytes(outside / "a", "1");
  std::filesystem::create_directory(folder / "t");
  std::filesystem::create_directory_symlink(outside.path(), folder / "t/link");
  ASSERT_TRUE(RemoveTree(files, folder / "t").ok());
  EXPECT_FALSE(std::filesystem::exists(folder / "t"));
  EXPECT_EQ(ReadBytes(outside / "a"), "1");
}

TEST(ParentFolder, IsThePathWithoutItsLastName) {
  EXPECT_EQ(ParentFolder("a/b"), "a");
  EXPECT_EQ(ParentFolder("a/b/"), "a");
  EXPECT_EQ(ParentFolder("a"), ".");
  EXPECT_EQ(ParentFolder("/a"), "/");
  EXPECT_EQ(ParentFolder("/"), "/");
}

TYPED_TEST(FileSystemRules, ExchangeSwapsFoldersAndFiles) {
  ASSERT_TRUE(this->files_.MakeFolders(this->At("s")).ok());
  ASSERT_TRUE(this->files_.MakeFolders(this->At("t")).ok());
  this->Write("s/a", "1");
  this->Write("t/a", "2");
  const absl::Status done = this->files_.Exchange(this->At("s"), this->At("t"));
  if (absl::IsUnimplemented(done)) GTEST_SKIP() << done;
  ASSERT_TRUE(done.ok()) << done;
  EXPECT_EQ(this->Read("s/a"), "2");
  EXPECT_EQ(this->Read("t/a"), "1");
  EXPECT_EQ(this->files_.Exchange(this->At("s"), this->At("u")).code(), Code::kNotFound);
  EXPECT_EQ(this->files_.Exchange(this->At("u"), this->At("s")).code(), Code::kNotFound);
  EXPECT_EQ(this->Read("s/a"), "2");
}

TYPED_TEST(FileSystemRules, LinksAreFollowedWithinAPathAndReplacedAsNames) {
  ASSERT_TRUE(this->files_.MakeFolders(this->At("one")).ok());
  ASSERT_TRUE(this->files_.MakeFolders(this->At("two")).ok());
  this->Write("one/a", "1");
  this->Write("two/a", "2");
  ASSERT_TRUE(this->files_.MakeLink("one", this->At("link")).ok());
  EXPECT_EQ(this->files_.MakeLink("two", this->At("link")).code(), Code::kAlreadyExists);
  EXPECT_EQ(this->files_.ReadLink(this->At("link")).value(), "one");
  EXPECT_EQ(this->Read("link/a"), "1");
  EXPECT_THAT(this->files_.List(this->At("link")).value(), ElementsAre("a"));
  EXPECT_EQ(this->files_.Open(this->At("link")).status().code(), Code::kInvalidArgument);

  ASSERT_TRUE(this->files_.MakeLink("two", this->At("new")).ok());
  ASSERT_TRUE(this->files_.Replace(this->At("new"), this->At("link")).ok());
  EXPECT_EQ(this->Read("link/a"), "2");
  EXPECT_FALSE(this->files_.Exists(this->At("new")).value());

  ASSERT_TRUE(this->files_.Remove(this->At("link")).ok());
  EXPECT_EQ(this->files_.ReadLink(this->At("link")).status().code(), Code::kNotFound);
  EXPECT_EQ(this->files_.ReadLink(this->At("two")).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(this->files_.ReadLink(this->At("two/a")).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(this->Read("two/a"), "2");

  ASSERT_TRUE(this->files_.MakeLink("absent", this->At("link")).ok());
  EXPECT_TRUE(this->files_.Exists(this->At("link")).value());
  EXPECT_EQ(this->files_.Open(this->At("link/a")).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace cistern
