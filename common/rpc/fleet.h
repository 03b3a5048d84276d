// The servers of a fleet, from the text that a person types: "host:port,host:port".
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/rpc/remote_server.h"

namespace cistern {

// Owns the connections. Threads: immutable; the servers themselves take any thread.
class Fleet {
 public:
  explicit Fleet(std::vector<std::unique_ptr<RemoteServer>> servers)
      : servers_(std::move(servers)) {}
  // One link a server, in the order they were named; ParameterClient sorts them by rank.
  std::vector<ServerLink> links() const;

 private:
  const std::vector<std::unique_ptr<RemoteServer>> servers_;
};

// Prepares a connection to each of `servers`: addresses "host:port" separated by commas, in any
// order; an IPv6 host stands in brackets. Nothing is sent yet.
// kInvalidArgument for an empty list, a malformed address, or one that occurs twice.
absl::StatusOr<std::unique_ptr<Fleet>> ConnectFleet(const std::string& servers,
                                                    const RemoteOptions& options = {});

}  // namespace cistern
