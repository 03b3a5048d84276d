// The certificates of a server, read from PEM files.
#pragma once

#include <string>

#include "common/base/status.h"

namespace cistern {

// File names as from flags; all empty: no TLS.
struct TlsFiles {
  std::string cert;       // the server's certificate, with those that lead to its authority
  std::string key;        // its private key
  std::string client_ca;  // if not empty, clients must show a certificate of this authority
};

// The contents of those files.
struct TlsPem {
  std::string cert, key, client_ca;

  bool on() const { return !cert.empty(); }
  bool operator==(const TlsPem&) const = default;
};

// kInvalidArgument if only one of certificate and key is named, an authority is named without them,
// or a file cannot be read or does not hold what its flag says.
absl::StatusOr<TlsPem> ReadTls(const TlsFiles& files);

// kInvalidArgument unless certificate, key and authority can be read and the key belongs to the
// certificate.
absl::Status CheckPair(const TlsPem& tls);

}  // namespace cistern
