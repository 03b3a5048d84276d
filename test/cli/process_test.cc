#include "cli/process.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

namespace cistern {
namespace {

std::string LogPath() {
  return testing::TempDir() + "/process_test.log";
}

TEST(ChildProcess, GivesItsOutputLineByLine) {
  auto child = ChildProcess::Start({"/bin/echo", "one\ntwo"}, LogPath());
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ(*(*child)->ReadLine(absl::Seconds(30)), "one");
  EXPECT_EQ(*(*child)->ReadLine(absl::Seconds(30)), "two");
}

TEST(ChildProcess, ThatEndsSaysWhy) {
  std::remove(LogPath().c_str());
  auto child = ChildProcess::Start({"/bin/ls", "/no/such/folder"}, LogPath());
  ASSERT_TRUE(child.ok()) << child.status();
  const absl::Status status = (*child)->ReadLine(absl::Seconds(30)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_NE(status.message().find("/no/such/folder"), std::string::npos) << status;
}

TEST(ChildProcess, IsStoppedWithItsOwner) {
  pid_t pid = 0;
  {
    auto child = ChildProcess::Start({"/bin/sleep", "1000"}, LogPath());
    ASSERT_TRUE(child.ok()) << child.status();
    pid = (*child)->pid();
    EXPECT_TRUE((*child)->Running());
  }
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(ChildProcess, ThatIsMissingIsNamed) {
  const auto child = ChildProcess::Start({"/no/such/program"}, LogPath());
  EXPECT_NE(child.status().message().find("/no/such/program"), std::string::npos);
}

TEST(ProgramFolder, HoldsThisTest) {
  const auto folder = ProgramFolder();
  ASSERT_TRUE(folder.ok());
  EXPECT_TRUE(std::filesystem::exists(*folder + "/cli_test"));
}

}  // namespace
}  // namespace cistern
