// The sockets that a server listens on: one for each address that a host name stands for.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"

namespace cistern {

// Owns the sockets; closed with it. Threads: one at a time.
class ListeningSockets {
 public:
  // Listens on `address`, an IPv4 or IPv6 address or a host name, and `port`; 0 takes a free one,
  // the same for all addresses. kFailedPrecondition if the port is taken, kInvalidArgument if the
  // address cannot be bound, each with what to do.
  static absl::StatusOr<ListeningSockets> Open(const std::string& address, int port);

  ListeningSockets(ListeningSockets&& other) noexcept
      : fds_(std::move(other.fds_)), port_(other.port_) {}
  ~ListeningSockets();

  int port() const { return port_; }
  const std::vector<int>& fds() const { return fds_; }
  void Close();

 private:
  explicit ListeningSockets(int port) : port_(port) {}

  std::vector<int> fds_;  // that do not block
  int port_;
};

}  // namespace cistern
