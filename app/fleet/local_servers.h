// A fleet of cistern-server processes on loopback that lives as long as the object.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/fleet/process.h"
#include "common/base/status.h"

namespace cistern::app {

struct LocalServersOptions {
  int server_num = 1;
  std::string program;  // path of cistern-server
  std::string cluster = "cistern";
  std::string data_dir;  // shared by all servers
  std::string log_dir;   // logs are log_dir/server-<rank>-of-<n>.log
};

// Threads: one at a time.
class LocalServers {
 public:
  // Returns when every server has printed its port. kInternal, with the end of the log, if one
  // fails; the others are then stopped.
  static absl::StatusOr<std::unique_ptr<LocalServers>> Start(const LocalServersOptions& options);
  // Sends SIGTERM to all servers, then waits for each.
  ~LocalServers();

  // "127.0.0.1:41003,127.0.0.1:41005", by rank.
  const std::string& addresses() const { return addresses_; }

 private:
  LocalServers() = default;
  std::vector<std::unique_ptr<ChildProcess>> servers_;
  std::string addresses_;
};

// The port in the line that cistern-server prints when it is ready:
// "cistern-server rank=0 port=41003 ready".
absl::StatusOr<int> ParseReadyLine(const std::string& line);

}  // namespace cistern::app
