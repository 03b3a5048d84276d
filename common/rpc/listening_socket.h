// The listening sockets of a server: one for each address that its host name resolves to.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"

namespace cistern {

// Owns the sockets and closes them when it is destroyed. Threads: one at a time.
class ListeningSockets {
 public:
  // Listens on `address`, an IPv4 or IPv6 address or a host name, and on `port`; 0 picks a free
  // port, the same for all addresses. kFailedPrecondition: the port is taken; kUnavailable: this
  // machine does not have the address yet, or the name service does not know the name, which may
  // pass; kInvalidArgument: the address cannot be bound. The messages say what to do, and the
  // errors have the option bind or port.
  static absl::StatusOr<ListeningSockets> Open(const std::string& address, int port);

  // Open's errors that `address` alone decides.
  static absl::Status CheckAddress(const std::string& address);

  ListeningSockets(ListeningSockets&& other) noexcept
      : fds_(std::move(other.fds_)), port_(other.port_) {}
  ~ListeningSockets();

  int port() const { return port_; }
  const std::vector<int>& fds() const { return fds_; }
  void Close();

 private:
  explicit ListeningSockets(int port) : port_(port) {}

  std::vector<int> fds_;  // non-blocking
  int port_;
};

}  // namespace cistern
