// Finds out why a TLS connection to a server fails. gRPC says "Socket closed".
#pragma once

#include <string>

#include "absl/time/time.h"
#include "common/base/host_address.h"
#include "common/base/status.h"
#include "common/tls/tls_files.h"

namespace cistern {

// Connects to a server that did not answer, and reports what is wrong between its certificates and
// those of `files`, with a fix: kPermissionDenied if one side does not accept the other,
// kFailedPrecondition if one of them speaks plain text. OK if nothing is wrong with TLS; also if no
// server is reached. Takes at most about `limit`.
absl::Status ProbeTls(const HostPort& server, const TlsFiles& files, absl::Duration limit);

}  // namespace cistern
