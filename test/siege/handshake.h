// Handshakes of TLS that no client library of gRPC makes.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "common/base/status.h"
#include "common/tls/authority.h"

namespace cistern {

struct HandshakeOptions {
  KeyedCertificate own;  // shown to the server; empty: none
  std::string version;   // "1.0", "1.1", "1.2" or "1.3"
  // After the handshake, starts another one in the same connection.
  bool renegotiates = false;
  absl::Duration limit = absl::Seconds(5);
};

// OK if the server completes the handshake, with `renegotiates` also the second one, and does not
// close the connection at once. The server's certificate is not checked.
absl::Status TryHandshake(int port, const HandshakeOptions& options);

}  // namespace cistern
