// Answers GET /metrics over HTTP, on a port or on a socket in the file system.
//
//   MetricsPlace place;
//   place.port = 9100;  // 0 picks a free one
//   CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<MetricsEndpoint> endpoint,
//                            MetricsEndpoint::Start(place, [&] { return node.MetricsText(); }));
//
// One thread accepts, reads and answers, so callers cost the process at most one core. What they
// can hold is bounded: kMaxConnections connections of 16 KiB; a connection serves one request and
// ends after kMaxSeconds, however slowly its bytes arrive; a further connection ends the oldest
// one, so a client that holds them all does not lock out a scraper. Only GET and HEAD of /metrics
// are answered, and no body is read.
//
// There is neither encryption nor a password, so the port is on the loopback interface unless
// another address is asked for. The figures name tables and counts, never keys or values.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/base/thread_pool.h"

namespace cistern {

// Where the figures are read. Both may be set.
struct MetricsPlace {
  std::optional<int> port;         // 0 picks a free one; not set: no port
  std::string bind = "127.0.0.1";  // the port's address, or a host name
  std::string socket;              // path of a Unix socket, created with mode 0660; empty: none
  bool is_set() const { return port.has_value() || !socket.empty(); }
};

// Threads: Start and destruction from one thread. `page` is called on the endpoint's thread.
class MetricsEndpoint {
 public:
  static constexpr int kMaxConnections = 32;
  static constexpr int kMaxSeconds = 10;

  // page: the text of a reply (MetricText). It must not wait for anything that may take long, and
  // outlives the endpoint with all that it reads.
  //
  // A socket that an ended process has left at `place.socket` is replaced. kFailedPrecondition: the
  // port is taken, another process listens on the socket, or a file has its name;
  // kInvalidArgument: the path is longer than a socket's may be, its folder cannot be written, or
  // the address cannot be bound; kUnavailable: this machine does not have the address. The errors
  // have the options metrics_port, metrics_bind and metrics_socket.
  static absl::StatusOr<std::unique_ptr<MetricsEndpoint>> Start(const MetricsPlace& place,
                                                                std::function<std::string()> page);
  // Ends all connections and removes the socket's file.
  ~MetricsEndpoint();

  // The port; 0: there is none.
  int port() const;
  // Where the figures are: "http://127.0.0.1:9100/metrics", the path of the socket, or both with a
  // comma between them.
  std::string Where() const;

 private:
  class Service;  // hides the library's types

  MetricsEndpoint();

  std::unique_ptr<Service> service_;
  std::unique_ptr<ThreadPool> thread_;
};

}  // namespace cistern
