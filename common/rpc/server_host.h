// Puts a ControlPlane and a DataPlane on a port: gRPC's callback server, the adapters from its
// services to the plain interfaces (control_rpc.h, data_rpc.h), and the standard health service
// (grpc.health.v1), which says what health_probe.h finds.
//
// Data calls run on gRPC's threads, so they must not block. Control calls run on threads of the
// host's own (control_threads.h): a save may take minutes.
//
// What a stranger can make it hold is bounded: connections by their number, and what they hold in
// memory, of messages that are not complete and of calls under way, by HostOptions::memory_bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/base/status.h"
#include "common/wire/planes.h"

namespace cistern {

struct HostOptions {
  int max_connections = 1024;
  // What all connections may hold together. Above it calls are refused with kUnavailable, and the
  // connection that holds most is ended.
  uint64_t memory_bytes = uint64_t{512} << 20;
  // Called once connections hold much less memory than they did; must not throw.
  std::function<void()> give_memory_back = [] {};
};

// Threads: Start and Stop from one thread.
class ServerHost {
 public:
  // Serves `control` and `data` (borrowed: they outlive the host) on bind_address:port; port 0
  // takes a free one. kFailedPrecondition if the port is taken, kInvalidArgument if the address
  // cannot be bound, each with what to do.
  static absl::StatusOr<std::unique_ptr<ServerHost>> Start(const std::string& bind_address,
                                                           int port, ControlPlane* control,
                                                           DataPlane* data,
                                                           const HostOptions& options = {});
  // Stop without grace, then waits for handlers that still run.
  ~ServerHost();

  int port() const { return port_; }

  // Reports NOT_SERVING, takes no new calls, refuses those that wait for a thread, gives those in
  // flight `grace` to end and cancels the rest. True: no handler runs any more. False: some still
  // run; a caller that does not want to wait for them must end the process. May be called again.
  bool Stop(absl::Duration grace);

 private:
  struct Services;  // what knows gRPC

  ServerHost();

  std::unique_ptr<Services> services_;
  int port_ = 0;
};

}  // namespace cistern
