// TLS on a connection between workers: both sides show a certificate of the fleet's authority that
// makes its holder a worker of the cluster. Host names do not matter: any worker's certificate may
// join.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/tls/tls_files.h"

struct ssl_st;
struct ssl_ctx_st;

namespace cistern::group {

enum class TlsSide { kConnects, kAccepts };

// TLS on one socket, which it borrows.
//
// Threads: one at a time.
class SecureChannel {
 public:
  ~SecureChannel();

  // Continues the handshake without waiting. OK: it is complete, and the other side is a worker.
  // kUnavailable with poll events in *events: waits for the other side. kPermissionDenied: the
  // other side is not accepted, or does not accept this one, with why.
  absl::Status Handshake(short* events);

  // Like send(2) and recv(2) on a non-blocking socket, after the handshake: the number of bytes, 0
  // (Receive) once the other side has closed, or -1 with errno; EKEYREJECTED: the other side
  // refused this side's certificate. Bytes that Send has taken may wait in memory for the socket:
  // while HoldsOutput(), Send or Flush must be called again once it is writable.
  // more: they may wait for further bytes of the same message.
  ssize_t Send(const void* bytes, size_t count, bool more = false);
  ssize_t Receive(void* bytes, size_t count);
  // 0, or -1 with errno.
  ssize_t Flush();
  bool HoldsOutput() const;
  // Whether bytes of the other side have been read from the socket and not yet by Receive: poll(2)
  // does not report them.
  bool HoldsBytes() const;

 private:
  friend class SecureContext;
  SecureChannel(ssl_st* ssl, int descriptor, std::string cluster)
      : ssl_(ssl), descriptor_(descriptor), cluster_(std::move(cluster)) {}
  absl::Status CheckPeer() const;
  ssize_t Result(int returned);

  ssl_st* const ssl_;  // writes to memory, reads from the socket
  const int descriptor_;
  const std::string cluster_;
  std::string out_;  // encrypted, on its way to the socket
  size_t sent_ = 0;  // of out_
};

// Certificates for the connections of one process group. Shared by its sockets.
//
// Threads: any thread.
class SecureContext {
 public:
  // Null without files. Errors as ReadMutualTls; kPermissionDenied if the certificate does not make
  // this program a worker of `cluster`.
  static absl::StatusOr<std::shared_ptr<const SecureContext>> Create(const TlsFiles& files,
                                                                     const std::string& cluster);
  ~SecureContext();

  // descriptor: a connected, non-blocking socket, which outlives the channel.
  absl::StatusOr<std::unique_ptr<SecureChannel>> Begin(int descriptor, TlsSide side) const;

 private:
  SecureContext(ssl_ctx_st* context, std::string cluster)
      : context_(context), cluster_(std::move(cluster)) {}

  ssl_ctx_st* const context_;
  const std::string cluster_;
};

}  // namespace cistern::group
