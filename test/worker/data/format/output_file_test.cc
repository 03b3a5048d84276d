#include "worker/data/format/output_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>

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

TEST(OutputFile, RefusesADeviceOrAPipe) {
  TempFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/null", folder / "link");
  for (const std::string& path : {folder / "pipe", folder / "link", std::string("/dev/null")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(OutputFile::Check(path, {}))) << path;
  }
  EXPECT_TRUE(OutputFile::Check(folder / "new", {}).ok());
}

TEST(OutputFile, AppearsCompleteAndOnlyAtClose) {
  TempFolder folder;
  auto file = OutputFile::Create(Disk(), folder / "out").value();
  ASSERT_EQ(file->Append("count=? rows"), absl::OkStatus());
  ASSERT_EQ(file->WriteAt(6, "7"), absl::OkStatus());
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  ASSERT_EQ(file->Close(), absl::OkStatus());
  EXPECT_EQ(ReadBytes(folder / "out"), "count=7 rows");
  EXPECT_FALSE(std::filesystem::exists(folder / "out.tmp"));
}

TEST(OutputFile, EveryCallAfterAnErrorReturnsItAndNoFileIsLeft) {
  TempFolder folder;
  auto file = OutputFile::Create(Disk(), folder / "out").value();
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
