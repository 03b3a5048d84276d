// The certificates of a gRPC server, which can be renewed while it runs.
//
// gRPC's C++ interface reads them once, or follows files without checking that certificate and key
// fit each other. Its C interface asks for them at each handshake.
#pragma once

#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/tls/tls_files.h"

namespace cistern {

// Outlives the server that uses it. Threads: any thread.
class RenewedCredentials final : public grpc::ServerCredentials {
 public:
  explicit RenewedCredentials(const TlsPem& tls);
  ~RenewedCredentials() override;

  // New connections use these; open ones keep theirs. ca: empty exactly if it was before.
  void Renew(const TlsPem& tls);

  // Not supported, and does nothing.
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  // gRPC calls these: the second one at each handshake.
  int AddPortToServer(const std::string& address, grpc_server* server) override;
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config);

  grpc_server_credentials* credentials_;
  absl::Mutex mutex_;
  TlsPem tls_ ABSL_GUARDED_BY(mutex_);
  bool fetched_ ABSL_GUARDED_BY(mutex_) = false;  // gRPC has tls_
};

}  // namespace cistern
