// The serving process on the network: the Open Inference Protocol (KServe v2) over gRPC and over
// HTTP, on one Predictor.
//
//   CISTERN_ASSIGN_OR_RETURN(auto server, InferenceServer::Start(*predictor, options));
//   LogInfo(absl::StrCat("http ", server->http_port(), " grpc ", server->grpc_port()));
//   ...
//   server->Stop(absl::Seconds(10));
//
// docs/serving.md describes the protocol, its limits and its figures.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/base/status.h"
#include "common/tls/tls_files.h"
#include "serve/predictor/predictor.h"
#include "serve/server/request_log.h"
#include "serve/server/serve_limits.h"

namespace cistern::serve {

inline constexpr int kNoPort = -1;

struct InferenceServerOptions {
  std::string bind = "127.0.0.1";
  int http_port = 8000;      // 0 picks a free one; kNoPort: no HTTP
  int grpc_port = 8001;      // 0 picks a free one; kNoPort: no gRPC
  int threads = 0;           // that predict; 0: one a core
  size_t max_in_flight = 0;  // requests that wait or are computed; 0: 64 * threads
  ServeLimits limits;
  TlsFiles tls;  // files that are replaced are read again (tls_renewal.h)
  RequestLogOptions log;
  // The server is not ready once it is true, as after BeginDrain. Null: none. Outlives the server.
  const std::atomic<bool>* stopping = nullptr;
};

// Threads: Start, Stop and destruction from one thread.
class InferenceServer {
 public:
  // A server without a model: it is live, but not ready until Serve. kInvalidArgument for options
  // that do not fit, an address that cannot be bound, or certificates that do not work;
  // kFailedPrecondition if a port is taken.
  static absl::StatusOr<std::unique_ptr<InferenceServer>> Start(
      const InferenceServerOptions& options);
  // With its model.
  static absl::StatusOr<std::unique_ptr<InferenceServer>> Start(
      Predictor& predictor, const InferenceServerOptions& options);
  // Stops without a grace period, but waits for the predictions that are being computed.
  ~InferenceServer();

  // Serves `predictor`, which outlives the server, from now on. Call it once.
  void Serve(Predictor& predictor);
  // For the figures: an attempt to open the model for Serve.
  void CountFirstOpen(bool opened);

  int http_port() const;  // kNoPort: none
  int grpc_port() const;
  int threads() const;

  // Not ready from now on, so that load balancers stop sending requests, and callers are asked to
  // close their connections; requests are answered as before.
  void BeginDrain();
  // Accepts no new connections; answers requests that are arriving, which have half of `grace` and
  // at most 5 s to be here; refuses new ones, and gives those in flight `grace` to be answered.
  // False: some were not. May be called more than once.
  bool Stop(absl::Duration grace);

 private:
  struct Parts;

  InferenceServer();
  std::unique_ptr<Parts> parts_;
};

}  // namespace cistern::serve
