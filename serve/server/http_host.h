// Answers the Open Inference Protocol over HTTP/1.1, with libmicrohttpd.
//
// One thread of the library reads and writes all connections. An infer request whose body has
// arrived is suspended and given to the core's queue; a thread of the queue decodes, predicts,
// encodes, and resumes it. Everything else is answered on the library's thread.
//
// What strangers can take is bounded: connections (connection_acceptor.h), their headers (32 KiB,
// in a fixed buffer of 128 KiB each), a body (max_message_bytes), all incomplete messages and calls
// together (connection_book.h), and silence (keep_alive_seconds).
//
// Certificates belong to a daemon of the library. Renewed ones start another daemon, which gets the
// new connections.
#pragma once

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/base/status.h"
#include "common/rpc/listening_socket.h"
#include "common/tls/tls_files.h"
#include "serve/server/inference_core.h"
#include "serve/server/serve_limits.h"

namespace cistern::serve {

// Threads: Start, Stop and destruction from one thread.
class HttpHost {
 public:
  // core: outlives the host. kInvalidArgument if certificate and key do not fit each other.
  static absl::StatusOr<std::unique_ptr<HttpHost>> Start(ListeningSockets sockets,
                                                         const TlsPem& tls,
                                                         const ServeLimits& limits,
                                                         InferenceCore* core);
  // The queue of the core must be drained before.
  ~HttpHost();

  int port() const;
  // New connections use these certificates; open ones keep theirs. kInvalidArgument: they do not
  // fit each other, and the others stay.
  absl::Status Renew(const TlsPem& tls);
  // Replies ask callers to close their connections from now on.
  void BeginDrain();
  // Closes the listening sockets; BeginDrain.
  void StopAccepting();
  // Waits, at most for `grace`, until the requests for predictions whose headers are here have
  // arrived whole.
  void AwaitBodies(absl::Duration grace);
  // Waits, at most for `grace`, until all answers of the core have been sent.
  void AwaitReplies(absl::Duration grace);

 private:
  class Service;  // hides the library's types

  HttpHost();
  std::unique_ptr<Service> service_;
};

}  // namespace cistern::serve
