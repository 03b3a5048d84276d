// What a client's connections show, and ask of a server, on a fleet behind TLS.
#pragma once

#include <grpcpp/security/credentials.h>

#include <memory>

#include "common/base/status.h"
#include "common/tls/tls_files.h"

namespace cistern {

// Channels share it, so it lives as long as the last of them. Threads: any thread.
struct ChannelSecurity {
  std::shared_ptr<grpc::ChannelCredentials> credentials;
};

// Both sides show a certificate of one authority, and the server's must name the host that was
// called. Files that are replaced are read again: new connections use the new ones. Null without
// files. Errors as ReadMutualTls.
absl::StatusOr<std::shared_ptr<const ChannelSecurity>> SecureChannels(const TlsFiles& files);

}  // namespace cistern
