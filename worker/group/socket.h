// TCP connections with deadlines.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "common/base/status.h"

namespace cistern {

using Deadline = std::chrono::steady_clock::time_point;

// Owns the descriptor of a non-blocking socket; the destructor closes it.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket();

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

// Whether a host name or address is this machine's loopback: "localhost", 127.x, ::1.
bool IsLoopback(const std::string& host);

// Accepts connections on a port.
class Listener {
 public:
  // port 0: a free port. only_loopback: refuses connections from other machines; else listens on
  // all addresses. kUnavailable if the port is taken.
  static absl::StatusOr<Listener> Open(uint16_t port, bool only_loopback = false);

  bool is_open() const { return socket_.is_open(); }
  uint16_t port() const { return port_; }
  int descriptor() const { return socket_.descriptor(); }
  // kDeadlineExceeded without a connection; kResourceExhausted if this process or machine can open
  // no more of them.
  absl::StatusOr<Socket> Accept(Deadline deadline) const;

 private:
  Socket socket_;
  uint16_t port_ = 0;
};

// "host:port" or "[v6 address]:port".
struct HostAndPort {
  std::string host;
  uint16_t port = 0;
};
absl::StatusOr<HostAndPort> ParseAddress(const std::string& address);

// Retries until the deadline, because the other side may start later.
absl::StatusOr<Socket> ConnectTo(const HostAndPort& address, Deadline deadline);

// The other side's address in numeric form, "10.0.0.3".
std::string HostOf(const Socket& socket);

// Send or receive exactly `count` bytes. kDeadlineExceeded; kUnavailable if the connection closes.
absl::Status SendAll(const Socket& socket, const void* bytes, size_t count, Deadline deadline);
absl::Status ReceiveAll(const Socket& socket, void* bytes, size_t count, Deadline deadline);

// Whether the other side has closed the connection. Does not consume received bytes.
bool HasEnded(const Socket& socket);

// Milliseconds until `deadline`, rounded up, for poll(); 0 once it has passed.
int MillisecondsUntil(Deadline deadline);

}  // namespace cistern
