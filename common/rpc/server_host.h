// Puts a ControlPlane and a DataPlane on a port: gRPC's callback server, the adapters from its
// services to the plain interfaces, and the standard health service (grpc.health.v1).
//
// Data calls run on gRPC's threads, so they must not block. Control calls run on a small pool of
// the host's own: a save may take minutes.
#pragma once

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/rpc/planes.h"
#include "common/status.h"

namespace cistern {

// Threads: Start and Stop from one thread.
class ServerHost {
 public:
  // Serves `control` and `data` (borrowed: they outlive the host) on bind_address:port; port 0
  // takes a free one. kFailedPrecondition if the port is taken, kInvalidArgument if the address
  // cannot be bound, each with what to do.
  static absl::StatusOr<std::unique_ptr<ServerHost>> Start(const std::string& bind_address,
                                                           int port, ControlPlane* control,
                                                           DataPlane* data);
  ~ServerHost();  // Stop without grace

  int port() const { return port_; }

  // Reports NOT_SERVING, takes no new calls, gives those in flight `grace` to end and cancels the
  // rest. Returns when no handler runs any more. May be called again.
  void Stop(absl::Duration grace);

 private:
  struct Services;  // what knows gRPC

  ServerHost();

  std::unique_ptr<Services> services_;
  int port_ = 0;
};

}  // namespace cistern
