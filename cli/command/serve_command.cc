#include "cli/command/serve_command.h"

#include <atomic>
#include <filesystem>
#include <memory>
#include <thread>

#include "absl/time/clock.h"
#include "cli/session/run_folder.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/interrupt.h"
#include "common/base/log.h"
#include "common/rpc/descriptor_limit.h"
#include "serve/predictor/open_predictor.h"
#include "serve/server/inference_server.h"
#include "worker/group/socket.h"

namespace cistern {
namespace {

constexpr absl::Duration kGrace = absl::Seconds(10);  // for requests in flight at a stop

struct ServeFlags {
  std::string folder, bind = "127.0.0.1";
  uint64_t port = 8000, grpc_port = 8001;
  bool insecure_remote = false, verify = false;
  uint64_t threads = 0, max_in_flight = 0, max_samples = 16384;
  uint64_t max_connections = 1024, max_message_mb = 64, rpc_memory_mb = 512;
  uint64_t poll_ms = 200;
  TlsFiles tls;
  std::string log_requests;
  double log_share = 0.01;
  uint64_t log_max_mb = 256;
};

absl::Status CheckRange(const char* flag, uint64_t value, uint64_t least, uint64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " ", value, " is not in ", least, " to ", most));
}

absl::Status CheckFlags(const ServeFlags& flags) {
  CISTERN_RETURN_IF_ERROR(CheckRange("--port", flags.port, 0, 65535));
  CISTERN_RETURN_IF_ERROR(CheckRange("--grpc-port", flags.grpc_port, 0, 65535));
  CISTERN_RETURN_IF_ERROR(CheckRange("--threads", flags.threads, 0, 1024));
  CISTERN_RETURN_IF_ERROR(CheckRange("--max-in-flight", flags.max_in_flight, 0, 1 << 20));
  CISTERN_RETURN_IF_ERROR(CheckRange("--max-samples", flags.max_samples, 1, 1 << 24));
  CISTERN_RETURN_IF_ERROR(CheckRange("--max-connections", flags.max_connections, 1, 1 << 20));
  CISTERN_RETURN_IF_ERROR(CheckRange("--max-message-mb", flags.max_message_mb, 1, 1024));
  CISTERN_RETURN_IF_ERROR(CheckRange("--rpc-memory-mb", flags.rpc_memory_mb, 1, 1 << 20));
  CISTERN_RETURN_IF_ERROR(CheckRange("--log-max-mb", flags.log_max_mb, 1, 1 << 20));
  CISTERN_RETURN_IF_ERROR(CheckRange("--poll-ms", flags.poll_ms, 0, 1000 * 3600));
  if (IsLoopback(flags.bind) || flags.insecure_remote || !flags.tls.cert.empty()) {
    return absl::OkStatus();
  }
  return WithFix(
      absl::InvalidArgumentError(absl::StrCat(
          "--bind ", flags.bind,
          " admits other machines, and without a certificate everything is sent in the clear")),
      "give --tls-cert and --tls-key (and --tls-client-ca to admit only clients with a "
      "certificate), use --bind 127.0.0.1, or add --insecure-remote on a network that you trust");
}

absl::StatusOr<InferenceServerOptions> ServerOptionsOf(const ServeFlags& flags, int threads) {
  const auto connections = static_cast<int>(flags.max_connections);
  const absl::StatusOr<int> room = ConnectionLimit(RaiseDescriptorLimit(), 2 * connections);
  if (!room.ok()) return AddContext(room.status(), "HTTP and gRPC together");
  InferenceServerOptions options;
  options.bind = flags.bind;
  options.http_port = static_cast<int>(flags.port);
  options.grpc_port = static_cast<int>(flags.grpc_port);
  options.threads = threads;
  options.max_in_flight = flags.max_in_flight;
  options.limits.max_connections = connections;
  options.limits.max_message_bytes = flags.max_message_mb << 20;
  options.limits.memory_bytes = flags.rpc_memory_mb << 20;
  options.tls = flags.tls;
  std::error_code error;  // without a current folder the path stays relative
  const auto folder = std::filesystem::absolute(flags.folder, error);
  options.log = {flags.log_requests, flags.log_share, flags.log_max_mb << 20,
                 error ? flags.folder : folder.lexically_normal().string()};
  return options;
}

Report ReadyReport(const Predictor& predictor, const InferenceServer& server,
                   const ServeFlags& flags) {
  const std::string http = absl::StrCat(flags.bind, ":", server.http_port());
  const std::string grpc = absl::StrCat(flags.bind, ":", server.grpc_port());
  const uint64_t commit = predictor.version().commit;
  Report report;
  report.json["ready"] = true;
  report.json["http"] = http;
  report.json["grpc"] = grpc;
  report.json["model"] = predictor.name();
  report.json["commit"] = commit;
  report.text = absl::StrCat("ready http=", http, " grpc=", grpc, " model=", predictor.name(),
                             " commit=", commit, "\n");
  return report;
}

absl::StatusOr<Report> RunServe(const ServeFlags& flags, Console& console) {
  const std::atomic<bool>* const interrupted = CatchInterrupts();
  CISTERN_RETURN_IF_ERROR(CheckFlags(flags));
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  PredictorOptions options;
  options.threads = flags.threads > 0 ? static_cast<int>(flags.threads) : cores;
  options.max_samples = flags.max_samples;
  options.poll_ms = static_cast<int>(flags.poll_ms);
  options.verify = flags.verify;
  options.fall_back = true;
  absl::StatusOr<std::unique_ptr<Predictor>> predictor = OpenPredictor(flags.folder, options);
  if (absl::IsNotFound(predictor.status())) {
    return WithFix(absl::InvalidArgumentError(predictor.status().message()),
                   IsRunFolder(flags.folder)
                       ? absl::StrCat("this is a run: cistern export serving ", flags.folder,
                                      " --out serving, then cistern serve serving")
                       : "name a folder that cistern export serving or cistern publish writes");
  }
  if (!predictor.ok()) {
    return WithFix(FromCheckpoint(predictor.status()),
                   "export or publish a version again (cistern export serving, cistern publish)");
  }
  CISTERN_ASSIGN_OR_RETURN(const InferenceServerOptions server_options,
                           ServerOptionsOf(flags, options.threads));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<InferenceServer> server,
                           InferenceServer::Start(**predictor, server_options));
  if (!IsLoopback(flags.bind) && flags.tls.client_ca.empty()) {
    LogWarning(absl::StrCat(
        "listening on ", flags.bind, ": anyone who reaches these ports can ",
        flags.tls.cert.empty() ? "ask for predictions, in the clear" : "ask for predictions"));
  }
  console.Announce(ReadyReport(**predictor, *server, flags));
  while (!*interrupted) absl::SleepFor(absl::Milliseconds(50));
  LogInfo("stopping: requests in flight are answered, new ones are refused");
  if (!server->Stop(kGrace)) LogWarning("predictions still run; waiting for them");
  Report report;
  report.json["ready"] = false;
  report.json["commit"] = (*predictor)->version().commit;
  return report;
}

void AddNetworkFlags(Command& command, ServeFlags* flags) {
  command.Flag("--port", &flags->port,
               {"PORT", "Port for HTTP; 0 picks a free one.", "--port 8080"});
  command.Flag("--grpc-port", &flags->grpc_port,
               {"PORT", "Port for gRPC; 0 picks a free one.", "--grpc-port 8081"});
  command.Flag("--bind", &flags->bind, {"ADDRESS", "Address to listen on.", "--bind 0.0.0.0"});
  command.Switch("--insecure-remote", &flags->insecure_remote,
                 {"", "Allows --bind to an address that other machines can reach, without TLS.",
                  "--bind 0.0.0.0 --insecure-remote"});
  command.Flag(
      "--tls-cert", &flags->tls.cert,
      {"FILE", "Certificate of this server (PEM); turns TLS on.", "--tls-cert server.pem"});
  command.Flag("--tls-key", &flags->tls.key,
               {"FILE", "Its private key (PEM).", "--tls-key server.key"});
  command.Flag("--tls-client-ca", &flags->tls.client_ca,
               {"FILE", "Admits only clients with a certificate of this authority (PEM).",
                "--tls-client-ca clients.pem"});
}

void AddLimitFlags(Command& command, ServeFlags* flags) {
  command.Flag("--threads", &flags->threads,
               {"INT", "Threads that predict; 0: one per core.", "--threads 4"});
  command.Flag("--max-in-flight", &flags->max_in_flight,
               {"INT",
                "Requests that wait or are computed; further ones are refused at once; 0: 64 for "
                "each thread.",
                "--max-in-flight 256"});
  command.Flag("--max-samples", &flags->max_samples,
               {"INT", "Samples of one request.", "--max-samples 4096"});
  command.Flag("--max-message-mb", &flags->max_message_mb,
               {"MB", "Size of one request, in MiB.", "--max-message-mb 16"});
  command.Flag("--max-connections", &flags->max_connections,
               {"INT", "Open connections of each protocol.", "--max-connections 4096"});
  command.Flag("--rpc-memory-mb", &flags->rpc_memory_mb,
               {"MB",
                "Memory for requests in progress and unfinished messages of each protocol, in MiB; "
                "above it, the connection that holds the most is closed.",
                "--rpc-memory-mb 2048"});
}

}  // namespace

void AddServeCommand(Command& root) {
  auto flags = std::make_shared<ServeFlags>();
  Command& command = root.Add(
      "serve", "Answers requests for predictions over HTTP and gRPC (Open Inference Protocol).",
      "cistern serve serving --port 8000 --grpc-port 8001");
  command.Argument("FOLDER", &flags->folder,
                   {"DIR", "A folder that cistern export serving or cistern publish writes.",
                    "serving", kRequired});
  AddNetworkFlags(command, flags.get());
  AddLimitFlags(command, flags.get());
  command.Flag("--poll-ms", &flags->poll_ms,
               {"MS", "How often to look for a newer version; 0: never.", "--poll-ms 1000"});
  command.Switch("--verify", &flags->verify,
                 {"", "Reads every byte of a version before it is served.", "--verify"});
  command.Flag("--log-requests", &flags->log_requests,
               {"FILE", "Writes a share of the requests, with their predictions.",
                "--log-requests requests.jsonl"});
  command.Flag("--log-share", &flags->log_share,
               {"SHARE", "The share of requests to log, 0 to 1.", "--log-share 0.1"});
  command.Flag("--log-max-mb", &flags->log_max_mb,
               {"MB", "Size at which the log is renamed to FILE.1, in MiB.", "--log-max-mb 64"});
  command.Footer(
      "Prints one line once it answers; Ctrl-C or SIGTERM stops it after the requests in "
      "flight.\nHow to ask: docs/serving.md.");
  command.Does([flags](Console& console) { return RunServe(*flags, console); });
}

}  // namespace cistern
