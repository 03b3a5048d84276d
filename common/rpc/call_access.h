// Who makes a call, by the certificate of its connection, and whether its roles suffice.
//
// Every method needs a role (common/wire/control_methods.h). Without TLS everyone may do
// everything: such a server listens where only its own machine reaches it, or was told not to care
// (--insecure-remote).
#pragma once

#include <grpcpp/server_context.h>

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "common/base/role.h"
#include "common/base/status.h"
#include "common/tls/certificate.h"

namespace cistern {

struct Caller {
  std::string peer;                                // gRPC's name: "ipv4:10.0.0.3:51234"
  std::shared_ptr<const Certificate> certificate;  // null without TLS
  std::string trace_id;                            // call_trace.h

  // For messages and logs: "'train-1' at ipv4:10.0.0.3:51234", or the peer alone.
  std::string text() const;
};

// Threads: any thread.
class CallAccess {
 public:
  // cluster: that of this server, for which a certificate must give the role. checks: connections
  // show certificates.
  CallAccess(std::string cluster, bool checks) : cluster_(std::move(cluster)), checks_(checks) {}

  Caller CallerOf(const grpc::ServerContextBase& context);

  // kPermissionDenied, with what the caller has and what it needs, unless it may make a call of
  // `method`, which needs `role`.
  absl::Status Check(const Caller& caller, absl::string_view method, Role role) const;

  const std::string& cluster() const { return cluster_; }

 private:
  const std::string cluster_;
  const bool checks_;
  // Parsing a certificate takes longer than many a call. By the PEM text, of which strangers have
  // none: gRPC has checked that the authority signed it.
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, std::shared_ptr<const Certificate>> parsed_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace cistern
