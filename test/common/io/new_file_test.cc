#include "common/io/new_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>

#include "common/base/hash.h"
#include "test/support/memory_file_system.h"
#include "test/support/temp_folder.h"

namespace cistern {
namespace {

// Limits the size of files that this process writes to `bytes`, until destroyed.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_;
  const sighandler_t handler_;
};

TEST(NewFile, HasItsNameOnlyOnceItIsComplete) {
  MemoryFileSystem files;
  auto file = NewFile::Create(files, "a/b/c").value();
  ASSERT_TRUE(file->Append("one").ok());
  ASSERT_TRUE(file->Append("two").ok());
  EXPECT_FALSE(*files.Exists("a/b/c"));
  ASSERT_TRUE(file->Close().ok());
  EXPECT_EQ(*ReadWhole(files, "a/b/c", 100), "onetwo");
  EXPECT_EQ(file->bytes(), 6u);
  EXPECT_EQ(file->xxh3(), HashBytes("onetwo"));
}

TEST(NewFile, WithoutCloseNothingIsLeftAndTheOldFileStays) {
  MemoryFileSystem files;
  auto old = NewFile::Create(files, "a/b").value();
  ASSERT_TRUE(old->Append("old").ok() && old->Close().ok());
  auto file = NewFile::Create(files, "a/b").value();
  ASSERT_TRUE(file->Append("new").ok());
  file.reset();
  EXPECT_EQ(*ReadWhole(files, "a/b", 100), "old");
  EXPECT_EQ(files.List("a")->size(), 1u);
}

TEST(WriteWhole, ReplacesAFile) {
  MemoryFileSystem files;
  ASSERT_TRUE(WriteWhole(files, "a/b", "old").ok());
  ASSERT_TRUE(WriteWhole(files, "a/b", "new one").ok());
  EXPECT_EQ(*ReadWhole(files, "a/b", 100), "new one");
  EXPECT_EQ(files.List("a")->size(), 1u);
}

TEST(NewFile, RefusesADeviceOrAPipe) {
  TempFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/null", folder / "link");
  for (const std::string& path : {folder / "pipe", folder / "link", std::string("/dev/null")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(NewFile::Check(path, {}))) << path;
    EXPECT_TRUE(absl::IsInvalidArgument(NewFile::Create(Disk(), path).status())) << path;
  }
  EXPECT_TRUE(NewFile::Check(folder / "new", {}).ok());
  // Even if it leads to a file.
  EXPECT_TRUE(absl::IsInvalidArgument(NewFile::CheckNoDevice("/dev/stdout")));
}

TEST(NewFile, KeepsItsTemporaryNameWhileItsHeaderIsWritten) {
  TempFolder folder;
  auto file = NewFile::Create(Disk(), folder / "out").value();
  ASSERT_EQ(file->Append("count=? rows"), absl::OkStatus());
  ASSERT_EQ(file->WriteAt(6, "7"), absl::OkStatus());
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  ASSERT_EQ(file->Close(), absl::OkStatus());
  EXPECT_EQ(ReadBytes(folder / "out"), "count=7 rows");
  EXPECT_FALSE(std::filesystem::exists(folder / "out.tmp"));
}

TEST(NewFile, EveryCallAfterAnErrorReturnsItAndNoFileIsLeft) {
  TempFolder folder;
  auto file = NewFile::Create(Disk(), folder / "out").value();
  absl::Status first;
  {
    const FileSizeLimit limit(1 << 20);
    for (int i = 0; i < 4 && first.ok(); ++i) first = file->Append(std::string(1 << 20, 'x'));
  }
  ASSERT_FALSE(first.ok());
  // There is space again, but the file must not continue after the missing bytes.
  EXPECT_EQ(file->Append("y"), first);
  EXPECT_EQ(file->WriteAt(0, "y"), first);
  EXPECT_EQ(file->Close(), first);
  file.reset();
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  EXPECT_FALSE(std::filesystem::exists(folder / "out.tmp"));
}

}  // namespace
}  // namespace cistern
