#include "app/diagnose/local_processes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "app/fleet/process.h"
#include "test/support/temp_folder.h"

namespace cistern::app {
namespace {

TEST(LocalProcesses, FindsThoseWithTheNamesOfOurPrograms) {
  TempFolder folder;
  const std::string program = folder.path() + "/cistern-server";
  std::filesystem::copy_file("/bin/sleep", program);
  const auto child = ChildProcess::Start({program, "1000"}, folder.path() + "/log");
  ASSERT_TRUE(child.ok()) << child.status();
  const auto named = [&] {
    for (const LocalProcess& process : LocalProcesses()) {
      if (process.pid == (*child)->pid()) return process.name;
    }
    return std::string();
  };
  while (named().empty() && (*child)->Running()) usleep(1000);  // until it has its program's name
  EXPECT_EQ(named(), "cistern-server");
  const absl::StatusOr<std::string> text = DescribeProcess((*child)->pid());
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_TRUE(absl::StartsWith(*text, program + " 1000")) << *text;
  for (const char* word : {"VmRSS:", "Max open files", "cistern-server"}) {
    EXPECT_NE(text->find(word), std::string::npos) << word;
  }
  const pid_t pid = (*child)->pid();
  (*child)->Stop(absl::Seconds(5));
  EXPECT_EQ(named(), "");
  EXPECT_EQ(DescribeProcess(pid).status().code(), absl::StatusCode::kNotFound);
}

TEST(LocalProcesses, LeavesOutThisOne) {
  for (const LocalProcess& process : LocalProcesses()) EXPECT_NE(process.pid, getpid());
  const absl::StatusOr<std::string> text = DescribeProcess(getpid());
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_NE(text->find("app_test"), std::string::npos);
}

}  // namespace
}  // namespace cistern::app
