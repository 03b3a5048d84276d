#include "common/io/line_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "test/support/temp_folder.h"

namespace cistern {
namespace {

using testing::HasSubstr;

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

LineLogOptions OptionsFor(const std::string& path, bool appends) {
  LineLogOptions options;
  options.name = "the test log";
  options.path = path;
  options.max_bytes = 10;
  options.appends = appends;
  return options;
}

TEST(LineLog, RenamesAFullFile) {
  TempFolder folder;
  const std::string path = folder / "log";
  const std::unique_ptr<LineLog> log = *LineLog::Open(OptionsFor(path, true));
  for (const char* const line : {"one\n", "two\n", "three\n", "four\n"}) {
    EXPECT_TRUE(log->Write(line).ok());
  }
  EXPECT_EQ(TextOf(path + ".1"), "three\n");
  EXPECT_EQ(TextOf(path), "four\n");
  struct stat status = {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST(LineLog, AppendsOrBeginsAnew) {
  TempFolder folder;
  const std::string path = folder / "log";
  WriteBytes(path, "old\n");
  EXPECT_TRUE((*LineLog::Open(OptionsFor(path, true)))->Write("new\n").ok());
  EXPECT_EQ(TextOf(path), "old\nnew\n");
  EXPECT_TRUE((*LineLog::Open(OptionsFor(path, false)))->Write("last\n").ok());
  EXPECT_EQ(TextOf(path), "last\n");
  EXPECT_EQ(TextOf(path + ".1"), "old\nnew\n");
}

TEST(LineLog, FollowsAFileThatIsMovedAway) {
  TempFolder folder;
  const std::string path = folder / "log";
  const std::unique_ptr<LineLog> log = *LineLog::Open(OptionsFor(path, true));
  EXPECT_TRUE(log->Write("one\n").ok());
  std::filesystem::rename(path, folder / "moved");
  EXPECT_TRUE(log->Write("two\n").ok());
  EXPECT_EQ(TextOf(folder / "moved"), "one\n");
  EXPECT_EQ(TextOf(path), "two\n");
}

TEST(LineLog, WritesOnlyFiles) {
  TempFolder folder;
  EXPECT_THAT(std::string(LineLog::Open(OptionsFor("/dev/null", true)).status().message()),
              HasSubstr("is not a file"));
  std::filesystem::create_symlink(folder / "other", folder / "link");
  for (const bool appends : {true, false}) {
    const absl::Status status = LineLog::Open(OptionsFor(folder / "link", appends)).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(LineLog::Open(OptionsFor(folder / "no/log", true)).status()));
}

}  // namespace
}  // namespace cistern
