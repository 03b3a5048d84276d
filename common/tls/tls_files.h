// A certificate, its key and an authority, read from PEM files.
#pragma once

#include <string>

#include "common/base/status.h"

namespace cistern {

// File names as from flags; all empty: no TLS.
struct TlsFiles {
  std::string cert;  // this program's certificate, with those that lead to its authority
  std::string key;   // its private key
  std::string ca;    // the authority whose certificates the other side must show

  bool on() const { return !cert.empty() || !key.empty() || !ca.empty(); }
};

// The files named by CISTERN_TLS_CA, CISTERN_TLS_CERT and CISTERN_TLS_KEY: what programs use unless
// their flags say otherwise.
TlsFiles TlsFromEnvironment();

// The contents of those files.
struct TlsPem {
  std::string cert, key, ca;

  bool on() const { return !cert.empty(); }
  bool operator==(const TlsPem&) const = default;
};

// Reads the files that are named; the authority is optional. Errors name the options tls_cert,
// tls_key and `ca_option`.
//
// kInvalidArgument if only one of certificate and key is named, an authority is named without them,
// or a file does not hold what its option says; kFailedPrecondition if a file is not there or may
// not be read, which may pass.
absl::StatusOr<TlsPem> ReadTls(const TlsFiles& files, const std::string& ca_option = "tls_ca");

// The same for both sides of a connection that show certificates of one authority: all three files,
// or none. Also checks what they hold, with CheckPair and CheckTrusted.
absl::StatusOr<TlsPem> ReadMutualTls(const TlsFiles& files);

// kInvalidArgument unless certificate, key and authority can be read and the key belongs to the
// certificate.
absl::Status CheckPair(const TlsPem& tls);

// kInvalidArgument, with why, unless the certificate is valid now and leads to the authority.
absl::Status CheckTrusted(const TlsPem& tls);

}  // namespace cistern
