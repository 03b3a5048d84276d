// TCP connections with deadlines, in plain text or under TLS.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "common/base/host_address.h"
#include "common/base/status.h"
#include "worker/group/secure_channel.h"

namespace cistern::group {

using Deadline = std::chrono::steady_clock::time_point;

// Owns the descriptor of a non-blocking socket; the destructor closes it.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), channel_(std::move(other.channel_)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(channel_, other.channel_);
    return *this;
  }
  ~Socket();

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

  // From now on the connection speaks TLS, once Handshake has returned OK. context: null: it does
  // not, and Handshake returns OK.
  absl::Status BeginTls(const SecureContext* context, TlsSide side);
  // As SecureChannel::Handshake.
  absl::Status Handshake(short* events) const;

  // Like send(2) and recv(2): bytes, 0 at the end (Receive), or -1 with errno. more: further bytes
  // of the same message follow at once.
  ssize_t Send(const void* bytes, size_t count, bool more = false) const;
  ssize_t Receive(void* bytes, size_t count) const;
  // As SecureChannel's; in plain text nothing is held.
  bool HoldsOutput() const { return channel_ != nullptr && channel_->HoldsOutput(); }
  ssize_t Flush() const { return channel_ == nullptr ? 0 : channel_->Flush(); }
  bool HoldsBytes() const { return channel_ != nullptr && channel_->HoldsBytes(); }

 private:
  int descriptor_ = -1;
  std::unique_ptr<SecureChannel> channel_;  // null: plain text
};

// Accepts connections on a port.
class Listener {
 public:
  // port 0: a free port. host: how the others name this machine; a loopback address listens there
  // alone, and refuses connections from other machines; any other listens on all addresses.
  // kUnavailable if the port is taken.
  static absl::StatusOr<Listener> Open(uint16_t port, absl::string_view host = "");

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

// Retries until the deadline, because the other side may start later.
absl::StatusOr<Socket> ConnectTo(const HostPort& address, Deadline deadline);

// Waits until TLS, if the socket has begun it, is established. Errors as SecureChannel::Handshake;
// kDeadlineExceeded.
absl::Status CompleteHandshake(const Socket& socket, Deadline deadline);

// The other side's address in numeric form, "10.0.0.3".
std::string HostOf(const Socket& socket);

// Send or receive exactly `count` bytes. kDeadlineExceeded; kUnavailable if the connection closes;
// kPermissionDenied if the other side refused this side's certificate.
absl::Status SendAll(const Socket& socket, const void* bytes, size_t count, Deadline deadline);
absl::Status ReceiveAll(const Socket& socket, void* bytes, size_t count, Deadline deadline);

// Whether the other side has closed the connection. Does not consume received bytes.
bool HasEnded(const Socket& socket);

// Milliseconds until `deadline`, rounded up, for poll(); 0 once it has passed.
int MillisecondsUntil(Deadline deadline);

}  // namespace cistern::group
