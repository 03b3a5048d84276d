#include "common/io/files_below.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "test/support/temp_folder.h"

namespace cistern {
namespace {

using Code = absl::StatusCode;
namespace fs = std::filesystem;

class Below : public testing::Test {
 protected:
  Below() : root_(folder_ / "root") {
    fs::create_directory(root_);
    WriteBytes(folder_ / "secret", "1");
  }

  const TempFolder folder_;
  const std::string root_;
  LocalFileSystem disk_;
};

TEST_F(Below, DoesWhatTheFileSystemDoes) {
  fs::create_directory_symlink(root_, folder_ / "chosen");
  for (const std::string& root : {root_, root_ + "/", folder_ / "chosen", folder_ / "chosen//"}) {
    FilesBelow files(&disk_, root);
    ASSERT_TRUE(files.MakeFolders(root + "/m/t").ok());
    auto file = files.Create(root + "/m/t/a").value();
    ASSERT_TRUE(file->Append("x").ok());
    ASSERT_TRUE(file->Sync().ok());
    ASSERT_TRUE(file->Close().ok());
    ASSERT_TRUE(files.Publish(root + "/m/t/a", root + "/m/t/b").ok());
    ASSERT_TRUE(files.Replace(root + "/m/t/b", root + "/m/t/c").ok());
    EXPECT_TRUE(files.SyncFolder(root + "/m").ok());
    EXPECT_THAT(files.List(root + "/m/t").value(), testing::ElementsAre("c"));
    EXPECT_EQ(ReadWhole(files, root + "/m/t/c", 10).value(), "x");
    EXPECT_TRUE(files.Exists(root + "/m/t/c").value());
    EXPECT_TRUE(files.Lock(root + "/m/lock").ok());
    EXPECT_TRUE(RemoveTree(files, root + "/m").ok());
    EXPECT_TRUE(fs::is_empty(root_));
  }
}

TEST_F(Below, NoPathLeadsOut) {
  FilesBelow files(&disk_, root_);
  fs::create_directory_symlink(folder_.path(), root_ + "/link");
  for (const std::string& path :
       {folder_ / "secret", root_ + "/../secret", root_ + "/link/secret",
        root_ + "/link/deep/secret", root_, root_ + "/", folder_ / "rootsecret",
        std::string("secret"), std::string("/etc/passwd"), std::string()}) {
    for (const absl::Status& status :
         {files.Open(path).status(), files.Create(path).status(),
          files.CreatePrivate(path).status(), files.MakeFolders(path), files.Remove(path),
          files.SyncFolder(path), files.List(path).status(), files.Exists(path).status(),
          files.Lock(path).status(), files.MakeLink("x", path), files.ReadLink(path).status(),
          files.Publish(path, path + "x"), files.Replace(path, path + "x"),
          files.Exchange(path, path + "x")}) {
      EXPECT_EQ(status.code(), Code::kInvalidArgument) << path << ": " << status;
    }
  }
  ASSERT_TRUE(files.MakeFolders(root_ + "/m").ok());
  EXPECT_EQ(files.Replace(root_ + "/m", folder_ / "m").code(), Code::kInvalidArgument);
  EXPECT_EQ(ReadBytes(folder_ / "secret"), "1");
  EXPECT_EQ(disk_.List(folder_.path()).value().size(), 2u);
}

}  // namespace
}  // namespace cistern
