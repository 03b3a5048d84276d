// The servers under attack: real processes, with their resource use from /proc.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/fleet/process.h"
#include "common/base/status.h"
#include "test/siege/report.h"

namespace cistern {

// The resources of a process, which attacks must not exhaust or leak.
struct ProcessUse {
  uint64_t peak_bytes = 0;      // VmHWM
  uint64_t resident_bytes = 0;  // VmRSS
  uint64_t threads = 0;
  uint64_t descriptors = 0;
};

// One cistern-server on a free loopback port; the destructor kills it.
//
// Threads: one at a time; port and Use from any.
class SiegeServer {
 public:
  struct Options {
    std::string programs;  // folder of the programs
    std::string log;       // file, appended
    uint32_t rank = 0, server_num = 1;
    std::string data_dir;           // empty: none
    uint64_t descriptor_limit = 0;  // hard and soft; 0: that of this process
    std::vector<std::string> flags;
  };
  // Returns once the server has reported its port.
  static absl::StatusOr<std::unique_ptr<SiegeServer>> Start(const Options& options);

  // `cistern serve` with these flags, on an empty folder: it is live, and not ready. Its port is
  // that of gRPC.
  static absl::StatusOr<std::unique_ptr<SiegeServer>> Serve(const std::string& programs,
                                                            const std::string& folder,
                                                            const std::vector<std::string>& flags);

  int port() const { return port_; }
  std::string address() const;
  bool Running() { return process_->Running(); }
  ProcessUse Use() const;
  // Sends SIGTERM and waits; false if the server had to be killed or did not exit with code 0.
  bool StopCleanly();
  // The last lines of its log.
  std::string LogEnd() const { return process_->LogEnd(); }

 private:
  SiegeServer(std::unique_ptr<app::ChildProcess> process, int port)
      : process_(std::move(process)), port_(port) {}

  const std::unique_ptr<app::ChildProcess> process_;
  const int port_;
};

// Durable servers 0 .. n-1 of one fleet, with one data_dir.
struct SiegeFleet {
  static absl::StatusOr<SiegeFleet> Start(const std::string& programs, const std::string& folder,
                                          uint32_t server_num);
  std::string addresses() const;  // "127.0.0.1:41003,127.0.0.1:41005"
  std::string data_dir;
  std::vector<std::unique_ptr<SiegeServer>> servers;
};

// Checks that a server's peak memory is within its bound, and that all its other use soon returns
// to what it was before. name: "server 0".
void CheckUse(SiegeReport& report, const std::string& name, const SiegeServer& server,
              const ProcessUse& before);

// If this program was started to run another one under a descriptor limit (SiegeServer::Options),
// replaces itself with that program. argv: that of main.
void BecomeLimitedProgram(int argc, char** argv);

}  // namespace cistern
