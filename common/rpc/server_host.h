// Serves a ControlPlane and a DataPlane on a port: gRPC's callback server, the adapters from its
// services to the plain interfaces (control_rpc.h, data_rpc.h), and the standard health service
// (grpc.health.v1), which reports the state found by health_probe.h.
//
// Data calls run on gRPC's threads, so they must not block. Control calls run on the host's own
// threads (control_threads.h), because a save may take minutes.
//
// The resources available to hostile clients are bounded: the number of connections, and the memory
// of incomplete messages and of calls in progress (HostOptions::memory_bytes).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/base/status.h"
#include "common/tls/tls_files.h"
#include "common/wire/planes.h"

namespace cistern {

struct HostOptions {
  int max_connections = 1024;
  // The memory that all connections together may hold. Above it calls are refused with
  // kUnavailable, and the connection that holds the most memory is closed.
  uint64_t memory_bytes = uint64_t{512} << 20;
  // Certificates: without them the host speaks plain text, and everyone may do everything. Files
  // that are replaced are read again, for new connections.
  TlsFiles tls;
  std::string cluster = "cistern";  // for which a caller's certificate must give its role
  uint32_t rank = 0;                // of this server, for the audit log
  std::string audit_log;            // its path; empty: none
  // Called for each call that is refused for its caller's roles, on one of gRPC's threads.
  std::function<void(absl::string_view method, const absl::Status&)> refused = nullptr;
  // Called once the connections hold much less memory than at their peak; must not throw.
  std::function<void()> give_memory_back = [] {};
};

// Threads: Start and Stop from one thread.
class ServerHost {
 public:
  // Serves `control` and `data` (borrowed; they outlive the host) on bind_address:port; port 0
  // picks a free one. kFailedPrecondition if the port is taken, kInvalidArgument if the address
  // cannot be bound, or certificates or audit log cannot be used; messages say what to do.
  static absl::StatusOr<std::unique_ptr<ServerHost>> Start(const std::string& bind_address,
                                                           int port, ControlPlane* control,
                                                           DataPlane* data,
                                                           const HostOptions& options = {});
  // Stops without a grace period, then waits for handlers that still run.
  ~ServerHost();

  int port() const { return port_; }
  // Figures of connections, in the text format of Prometheus. Any thread, until destruction.
  std::string MetricsText() const;

  // Reports NOT_SERVING, accepts no new calls, refuses calls that wait for a thread, gives calls in
  // flight `grace` to finish and cancels the rest. True: no handler is running. False: some still
  // are; a caller that cannot wait for them must end the process. May be called more than once.
  bool Stop(absl::Duration grace);

 private:
  struct Services;  // hides gRPC's types

  ServerHost();

  std::unique_ptr<Services> services_;
  int port_ = 0;
};

}  // namespace cistern
