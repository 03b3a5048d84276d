// Shows what gRPC reads from and writes to an encrypted connection to a StreamWatch, in plain text.
//
// gRPC encrypts by OpenSSL, between a socket and its parser. watched_tls.cc defines SSL_new,
// SSL_read and SSL_write for the whole program: they call those of the library, and show the plain
// bytes of watched connections to their watch. gRPC makes the SSL of a connection while it takes
// the connection over, on the same thread, and that is how the two find each other
// (docs/decisions/2026-11-28-encrypted-frames-are-watched.md). As with watched_sockets.h, nothing
// is watched in a program that does not link this file.
#pragma once

#include <memory>

#include "common/rpc/stream_watch.h"

namespace cistern {

// While it lives, each SSL that its thread makes is shown to `watch` for as long as the SSL lives;
// once the watch reports an error, reading fails. Scopes of a thread do not overlap.
class TlsWatchScope {
 public:
  // watch: null: nothing is shown.
  explicit TlsWatchScope(std::shared_ptr<StreamWatch> watch);
  ~TlsWatchScope();
  TlsWatchScope(const TlsWatchScope&) = delete;
  TlsWatchScope& operator=(const TlsWatchScope&) = delete;
};

}  // namespace cistern
