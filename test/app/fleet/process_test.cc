#include "app/fleet/process.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "test/support/temp_folder.h"

namespace cistern::app {
namespace {

TEST(ChildProcess, ReadsOutputLineByLine) {
  const TempFolder folder;
  auto child = ChildProcess::Start({"/bin/echo", "one\ntwo"}, folder / "process.log");
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ(*(*child)->ReadLine(absl::Seconds(30)), "one");
  EXPECT_EQ(*(*child)->ReadLine(absl::Seconds(30)), "two");
}

TEST(ChildProcess, ReportsWhyTheProcessEnded) {
  const TempFolder folder;
  auto child = ChildProcess::Start({"/bin/ls", "/no/such/folder"}, folder / "process.log");
  ASSERT_TRUE(child.ok()) << child.status();
  const absl::Status status = (*child)->ReadLine(absl::Seconds(30)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_NE(status.message().find("/no/such/folder"), std::string::npos) << status;
}

TEST(ChildProcess, DestructorStopsTheProcess) {
  const TempFolder folder;
  pid_t pid = 0;
  {
    auto child = ChildProcess::Start({"/bin/sleep", "1000"}, folder / "process.log");
    ASSERT_TRUE(child.ok()) << child.status();
    pid = (*child)->pid();
    EXPECT_TRUE((*child)->Running());
  }
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(ChildProcess, NamesAMissingProgram) {
  const TempFolder folder;
  const auto child = ChildProcess::Start({"/no/such/program"}, folder / "process.log");
  EXPECT_NE(child.status().message().find("/no/such/program"), std::string::npos);
}

TEST(ProgramFolder, ContainsThisTest) {
  const auto folder = ProgramFolder();
  ASSERT_TRUE(folder.ok());
  EXPECT_TRUE(std::filesystem::exists(*folder + "/cli_test"));
}

}  // namespace
}  // namespace cistern::app
