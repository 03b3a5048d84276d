// A small certificate authority: it signs the certificates of a fleet's servers, workers and users.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/status.h"
#include "common/tls/certificate.h"

namespace cistern {

// A certificate and its private key, as PEM. Keys are on the curve P-256.
struct KeyedCertificate {
  std::string cert, key;
};

struct CertificateRequest {
  std::string name;                // common name: 1 to 64 characters
  std::vector<Membership> roles;   // at least one
  std::vector<std::string> hosts;  // DNS names and IP addresses; a server needs at least one
  absl::Duration lifetime = absl::Hours(24 * 90);
};

// A new authority, which signs itself. kInvalidArgument: a bad name, or a lifetime that is not
// positive or ends after the year 9999. key: as of Issue; with that of an older authority of this
// name, what the older one signed stays valid.
absl::StatusOr<KeyedCertificate> MakeAuthority(const std::string& name, absl::Duration lifetime,
                                               const std::string& key = "");

// A certificate signed by `authority`. It ends with the authority at the latest.
//
// key: the PEM of the key to certify; empty: a new one is made. kInvalidArgument: a bad request or
// key, or certificate and key of the authority do not fit each other.
absl::StatusOr<KeyedCertificate> Issue(const KeyedCertificate& authority,
                                       const CertificateRequest& request,
                                       const std::string& key = "");

}  // namespace cistern
