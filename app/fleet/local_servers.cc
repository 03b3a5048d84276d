#include "app/fleet/local_servers.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace cistern::app {

absl::StatusOr<int> ParseReadyLine(const std::string& line) {
  for (absl::string_view word : absl::StrSplit(line, ' ')) {
    int port = 0;
    if (absl::ConsumePrefix(&word, "port=") && absl::SimpleAtoi(word, &port)) return port;
  }
  return absl::InternalError(
      absl::StrCat("cistern-server printed '", line, "' instead of its port"));
}

absl::StatusOr<std::unique_ptr<LocalServers>> LocalServers::Start(
    const LocalServersOptions& options) {
  std::unique_ptr<LocalServers> fleet(new LocalServers());
  for (int rank = 0; rank < options.server_num; ++rank) {
    const std::vector<std::string> argv = {options.program,
                                           absl::StrCat("--rank=", rank),
                                           absl::StrCat("--server_num=", options.server_num),
                                           "--port=0",
                                           absl::StrCat("--cluster=", options.cluster),
                                           absl::StrCat("--data_dir=", options.data_dir),
                                           "--durability=none"};
    CISTERN_ASSIGN_OR_RETURN(
        std::unique_ptr<ChildProcess> server,
        ChildProcess::Start(argv, absl::StrCat(options.log_dir, "/server-", rank, "-of-",
                                               options.server_num, ".log")));
    fleet->servers_.push_back(std::move(server));
  }
  for (const auto& server : fleet->servers_) {
    CISTERN_ASSIGN_OR_RETURN(const std::string line, server->ReadLine(absl::Seconds(30)));
    CISTERN_ASSIGN_OR_RETURN(const int port, ParseReadyLine(line));
    absl::StrAppend(&fleet->addresses_, fleet->addresses_.empty() ? "" : ",", "127.0.0.1:", port);
  }
  return fleet;
}

LocalServers::~LocalServers() {
  for (const auto& server : servers_) server->Signal(SIGTERM);
  for (const auto& server : servers_) server->Stop(absl::Seconds(10));
}

}  // namespace cistern::app
