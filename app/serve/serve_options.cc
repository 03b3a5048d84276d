#include "app/serve/serve_options.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/host_address.h"
#include "common/base/machine_limits.h"
#include "common/base/names.h"
#include "common/rpc/descriptor_limit.h"
#include "common/rpc/listening_socket.h"

namespace cistern::app {
namespace {

int PredictingThreads(const ServeOptions& options) {
  return options.threads > 0 ? static_cast<int>(std::min<uint64_t>(options.threads, 1 << 16))
                             : CoreCount();
}

absl::Status CheckServeRange(const char* option, uint64_t value, uint64_t min, uint64_t max) {
  if (value >= min && value <= max) return absl::OkStatus();
  return WithOptions(
      absl::InvalidArgumentError(absl::StrCat(value, " is not in ", min, " to ", max)), {option});
}

// Of each protocol.
absl::StatusOr<int> ConnectionsOf(uint64_t max_connections) {
  constexpr uint64_t kDefault = 1024;
  const uint64_t files = RaiseDescriptorLimit(),
                 room = std::max<uint64_t>(1, ConnectionRoom(files) / 2);
  if (max_connections == 0) return static_cast<int>(std::min(kDefault, room));
  if (max_connections <= room) return static_cast<int>(max_connections);
  return WithFix(WithOptions(absl::InvalidArgumentError(absl::StrCat(
                                 max_connections, " connections are above ", room,
                                 ", the connections of HTTP and as many of gRPC that a limit of ",
                                 files, " open files allows")),
                             {"max_connections"}),
                 "leave it out, lower it, or raise the limit (ulimit -n, LimitNOFILE=)");
}

}  // namespace

absl::Status CheckServeOptions(const ServeOptions& options) {
  const struct {
    const char* name;
    uint64_t value, min, max;
  } ranges[] = {
      {"port", options.port, 0, 65535},
      {"grpc_port", options.grpc_port, 0, 65535},
      {"max_in_flight", options.max_in_flight, 0, 1 << 20},
      {"max_samples", options.max_samples, 1, 1 << 24},
      {"max_connections", options.max_connections, 0, 1 << 20},
      {"drain_seconds", options.drain_seconds, 0, 3600},
      {"keep_alive_seconds", options.keep_alive_seconds, 1, 86400},
      {"max_connection_age_seconds", options.max_connection_age_seconds, 0, 86400},
      {"max_message_mb", options.max_message_mb, 1, 1024},
      {"rpc_memory_mb", options.rpc_memory_mb, 1, 1 << 20},
      {"log_max_mb", options.log_max_mb, 1, 1 << 20},
      {"poll_ms", options.poll_ms, 0, 1000 * 3600},
  };
  for (const auto& range : ranges) {
    CISTERN_RETURN_IF_ERROR(CheckServeRange(range.name, range.value, range.min, range.max));
  }
  if (!options.name.empty()) {
    CISTERN_RETURN_IF_ERROR(WithOptions(CheckName(options.name), {"name"}));
  }
  const bool is_protected = !options.tls.cert.empty();
  if (IsLoopback(options.bind) || options.insecure_remote || is_protected) return absl::OkStatus();
  CISTERN_RETURN_IF_ERROR(ListeningSockets::CheckAddress(options.bind));
  return WithFix(
      WithOptions(absl::InvalidArgumentError(absl::StrCat(
                      "the address ", options.bind,
                      " admits other machines, and without a certificate everything is sent in "
                      "the clear")),
                  {"bind", "tls_cert", "insecure_remote"}),
      "give a certificate with its key (and an authority to admit only its clients), listen on "
      "127.0.0.1, or, on a network that you trust, say that it may be insecure");
}

absl::StatusOr<serve::InferenceServerOptions> ServerOptionsOf(const ServeOptions& options) {
  CISTERN_ASSIGN_OR_RETURN(const int connections, ConnectionsOf(options.max_connections));
  serve::InferenceServerOptions server;
  server.bind = options.bind;
  server.http_port = static_cast<int>(options.port);
  server.grpc_port = static_cast<int>(options.grpc_port);
  server.threads = PredictingThreads(options);
  server.max_in_flight = options.max_in_flight;
  server.limits.max_connections = connections;
  server.limits.max_message_bytes = options.max_message_mb << 20;
  server.limits.memory_bytes = options.rpc_memory_mb << 20;
  server.limits.keep_alive_seconds = static_cast<int>(options.keep_alive_seconds);
  server.limits.max_connection_age =
      absl::Seconds(static_cast<int64_t>(options.max_connection_age_seconds));
  server.tls = options.tls;
  std::error_code error;  // without a current folder the path stays relative
  const auto folder = std::filesystem::absolute(options.folder, error);
  server.log = {options.log_requests, options.log_share, options.log_max_mb << 20,
                error ? options.folder : folder.lexically_normal().string()};
  return server;
}

serve::PredictorOptions PredictorOptionsOf(const ServeOptions& options) {
  serve::PredictorOptions predictor;
  predictor.threads = PredictingThreads(options);
  predictor.max_samples = options.max_samples;
  predictor.poll_ms = static_cast<int>(options.poll_ms);
  predictor.verify = options.verify;
  predictor.fall_back = true;
  predictor.name = options.name;
  return predictor;
}

}  // namespace cistern::app
