// Connections to the servers of a fleet, given as text: "host:port,host:port".
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/rpc/remote_server.h"

namespace cistern {

// Owns the connections. Threads: immutable; the servers may be called from any thread.
class Fleet {
 public:
  explicit Fleet(std::vector<std::unique_ptr<RemoteServer>> servers)
      : servers_(std::move(servers)) {}
  // One link per server, in the order given; ParameterClient sorts them by rank.
  std::vector<ServerLink> links() const;

 private:
  const std::vector<std::unique_ptr<RemoteServer>> servers_;
};

// Prepares a connection to each of `servers`: addresses "host:port" separated by commas, in any
// order, with IPv6 hosts in brackets. Sends nothing yet.
// kInvalidArgument for an empty list, a malformed address, a duplicate, or certificates that cannot
// be used.
absl::StatusOr<std::unique_ptr<Fleet>> ConnectFleet(const std::string& servers,
                                                    const RemoteOptions& options = {});

}  // namespace cistern
