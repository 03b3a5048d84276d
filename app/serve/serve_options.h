// The options of ServeFolder (serve_folder.h).
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "common/tls/tls_files.h"
#include "serve/predictor/open_predictor.h"
#include "serve/server/inference_server.h"

namespace cistern::app {

struct ServeOptions {
  std::string folder;  // that ExportServing or Publish writes
  std::string name;    // of the model, whatever its versions say; empty: as they say

  // Where it listens. A port of 0 picks a free one.
  std::string bind = "127.0.0.1";
  uint64_t port = 8000, grpc_port = 8001;
  TlsFiles tls;                  // ca: of the clients that are admitted; empty: all are
  bool insecure_remote = false;  // allows an address that other machines can reach, without TLS

  // What it takes on. 0 means the default: a thread per core, 64 requests for each thread, and
  // 1,024 connections, or fewer where the limit of open files allows fewer.
  uint64_t threads = 0, max_in_flight = 0, max_connections = 0;
  uint64_t max_samples = 16384;                       // of a request
  uint64_t max_message_mb = 64, rpc_memory_mb = 512;  // MiB; ServeLimits
  uint64_t keep_alive_seconds = 75;
  uint64_t max_connection_age_seconds = 0;  // 0: connections may grow old
  uint64_t drain_seconds = 1;               // InferenceServer::BeginDrain, before the end

  uint64_t poll_ms = 200;  // how often it looks for a newer version; 0: never
  bool verify = false;     // reads every byte of a version before it is served

  std::string log_requests;  // a file for a share of the requests; empty: no log
  double log_share = 0.01;
  uint64_t log_max_mb = 256;  // MiB
};

// kInvalidArgument: a number out of its range, an invalid name, or an address that other machines
// can reach although nothing protects what is sent.
absl::Status CheckServeOptions(const ServeOptions& options);

// Raises this process's limit of open files. kInvalidArgument: more connections than it allows.
absl::StatusOr<serve::InferenceServerOptions> ServerOptionsOf(const ServeOptions& options);

serve::PredictorOptions PredictorOptionsOf(const ServeOptions& options);

}  // namespace cistern::app
