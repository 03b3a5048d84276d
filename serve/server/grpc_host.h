// Puts the gRPC service on a port, with the standard health service (grpc.health.v1) beside it.
//
// Limits as in common/rpc/server_host.h: connections, their silence, the size of a message, and the
// memory of all calls and incomplete messages together.
#pragma once

#include <memory>

#include "absl/time/time.h"
#include "common/base/status.h"
#include "common/rpc/listening_socket.h"
#include "common/tls/tls_files.h"
#include "serve/server/inference_core.h"
#include "serve/server/serve_limits.h"

namespace cistern::serve {

// Threads: Start, Stop and destruction from one thread.
class GrpcHost {
 public:
  // core: outlives the host. kInvalidArgument if gRPC does not accept the certificates. The health
  // service says NOT_SERVING until SetServing.
  static absl::StatusOr<std::unique_ptr<GrpcHost>> Start(ListeningSockets sockets,
                                                         const TlsPem& tls,
                                                         const ServeLimits& limits,
                                                         InferenceCore* core);
  // The queue of the core must be drained before.
  ~GrpcHost();

  int port() const;
  // What the health service says, of the server and of its service.
  void SetServing(bool serving);
  // New connections use these certificates.
  void Renew(const TlsPem& tls);
  // Closes the listening sockets and reports NOT_SERVING.
  void StopAccepting();
  // Gives replies at most `grace` to be sent, and ends all connections.
  void Stop(absl::Duration grace);

 private:
  struct Parts;  // hides gRPC's types

  GrpcHost();
  std::unique_ptr<Parts> parts_;
};

}  // namespace cistern::serve
