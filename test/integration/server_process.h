// Runs cistern-server as real processes on free ports, for the tests in this folder.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "app/fleet/process.h"
#include "common/rpc/fleet.h"
#include "test/support/temp_folder.h"

namespace cistern {

// The path of a program of this build.
inline std::string ProgramPath(const std::string& name) {
  const char* folder = std::getenv("CISTERN_BIN");
  return absl::StrCat(folder == nullptr ? "build/release/bin" : folder, "/", name);
}

// A running server, which the destructor stops.
class ServerProcess {
 public:
  ServerProcess(uint32_t rank, uint32_t server_num, int port = 0,
                const std::vector<std::string>& more = {}) {
    std::vector<std::string> argv = {ProgramPath("cistern-server"), absl::StrCat("--rank=", rank),
                                     absl::StrCat("--server_num=", server_num),
                                     absl::StrCat("--port=", port), "--threads=1"};
    argv.insert(argv.end(), more.begin(), more.end());
    absl::StatusOr<std::unique_ptr<app::ChildProcess>> started =
        app::ChildProcess::Start(argv, folder_ / "server.log");
    EXPECT_TRUE(started.ok()) << started.status();
    process_ = *std::move(started);
    const absl::StatusOr<std::string> line = process_->ReadLine(absl::Seconds(30));
    if (line.ok()) ready_line_ = *line;
    const size_t at = ready_line_.find("port=");
    if (at != std::string::npos) port_ = std::atoi(ready_line_.c_str() + at + 5);
  }

  app::ChildProcess& process() { return *process_; }
  int port() const { return port_; }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }
  const std::string& ready_line() const { return ready_line_; }  // empty: it ended without one
  // Waits for the server to exit and returns its exit code.
  int ExitCode() {
    EXPECT_FALSE(process_->ReadLine(absl::Seconds(30)).ok());
    while (process_->Running()) absl::SleepFor(absl::Milliseconds(5));
    return process_->exit_code();
  }
  // Suspends the process; returns when all of its threads have stopped.
  void Freeze() {
    process_->Signal(SIGSTOP);
    int state = 0;
    EXPECT_EQ(waitpid(process_->pid(), &state, WUNTRACED), process_->pid());
    EXPECT_TRUE(WIFSTOPPED(state));
  }
  void Kill() {
    process_->Signal(SIGKILL);
    ExitCode();
  }

 private:
  const TempFolder folder_;
  std::unique_ptr<app::ChildProcess> process_;
  std::string ready_line_;
  int port_ = 0;
};

// Servers 0 .. n-1 and connections to them.
struct ProcessFleet {
  // flags: passed to each server in addition to --rank, --server_num and --port.
  explicit ProcessFleet(uint32_t server_num, const RemoteOptions& options = {},
                        const std::vector<std::string>& flags = {}) {
    std::vector<std::string> addresses;
    for (uint32_t rank = 0; rank < server_num; ++rank) {
      servers.push_back(std::make_unique<ServerProcess>(rank, server_num, 0, flags));
      addresses.push_back(servers.back()->address());
    }
    fleet = ConnectFleet(absl::StrJoin(addresses, ","), options).value();
  }
  std::vector<std::unique_ptr<ServerProcess>> servers;
  std::unique_ptr<Fleet> fleet;
};

}  // namespace cistern
