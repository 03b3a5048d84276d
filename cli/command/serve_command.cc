#include "cli/command/serve_command.h"

#include <atomic>
#include <filesystem>
#include <memory>

#include "absl/time/clock.h"
#include "app/run/run_folder.h"
#include "cli/command/version_flags.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/interrupt.h"
#include "common/base/fault_log.h"
#include "common/base/host_address.h"
#include "common/base/log.h"
#include "common/base/machine_limits.h"
#include "common/base/names.h"
#include "common/rpc/descriptor_limit.h"
#include "common/rpc/listening_socket.h"
#include "serve/predictor/open_predictor.h"
#include "serve/server/inference_server.h"

namespace cistern {
namespace {

constexpr absl::Duration kGrace = absl::Seconds(10);  // for requests in flight at a stop

struct ServeFlags {
  std::string folder, bind = "127.0.0.1";
  uint64_t port = 8000, grpc_port = 8001;
  bool insecure_remote = false, verify = false;
  uint64_t threads = 0, max_in_flight = 0, max_samples = 16384;
  std::string name;
  uint64_t drain_seconds = 1, keep_alive_seconds = 75, max_connection_age_seconds = 0;
  uint64_t max_connections = 0, max_message_mb = 64, rpc_memory_mb = 512;
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
  CISTERN_RETURN_IF_ERROR(CheckRange("--max-in-flight", flags.max_in_flight, 0, 1 << 20));
  CISTERN_RETURN_IF_ERROR(CheckRange("--max-samples", flags.max_samples, 1, 1 << 24));
  CISTERN_RETURN_IF_ERROR(CheckRange("--max-connections", flags.max_connections, 0, 1 << 20));
  CISTERN_RETURN_IF_ERROR(CheckRange("--drain-seconds", flags.drain_seconds, 0, 3600));
  CISTERN_RETURN_IF_ERROR(CheckRange("--keep-alive-seconds", flags.keep_alive_seconds, 1, 86400));
  CISTERN_RETURN_IF_ERROR(
      CheckRange("--max-connection-age-seconds", flags.max_connection_age_seconds, 0, 86400));
  CISTERN_RETURN_IF_ERROR(CheckRange("--max-message-mb", flags.max_message_mb, 1, 1024));
  CISTERN_RETURN_IF_ERROR(CheckRange("--rpc-memory-mb", flags.rpc_memory_mb, 1, 1 << 20));
  CISTERN_RETURN_IF_ERROR(CheckRange("--log-max-mb", flags.log_max_mb, 1, 1 << 20));
  CISTERN_RETURN_IF_ERROR(CheckRange("--poll-ms", flags.poll_ms, 0, 1000 * 3600));
  if (!flags.name.empty()) CISTERN_RETURN_IF_ERROR(AddContext(CheckName(flags.name), "--name"));
  if (IsLoopback(flags.bind) || flags.insecure_remote || !flags.tls.cert.empty()) {
    return absl::OkStatus();
  }
  CISTERN_RETURN_IF_ERROR(ListeningSockets::CheckAddress(flags.bind));
  return WithFix(
      absl::InvalidArgumentError(absl::StrCat(
          "--bind ", flags.bind,
          " admits other machines, and without a certificate everything is sent in the clear")),
      "give --tls-cert and --tls-key (and --tls-client-ca to admit only clients with a "
      "certificate), use --bind 127.0.0.1, or add --insecure-remote on a network that you trust");
}

// The connections of each protocol.
absl::StatusOr<int> ConnectionsOf(const ServeFlags& flags) {
  constexpr uint64_t kDefault = 1024;
  const uint64_t files = RaiseDescriptorLimit(),
                 room = std::max<uint64_t>(1, ConnectionRoom(files) / 2);
  if (flags.max_connections == 0) return static_cast<int>(std::min(kDefault, room));
  if (flags.max_connections <= room) return static_cast<int>(flags.max_connections);
  return WithFix(absl::InvalidArgumentError(
                     absl::StrCat("--max-connections ", flags.max_connections, " is above ", room,
                                  ", the connections of HTTP and as many of gRPC that a limit of ",
                                  files, " open files allows")),
                 "leave it out, lower it, or raise the limit (ulimit -n, LimitNOFILE=)");
}

absl::StatusOr<InferenceServerOptions> ServerOptionsOf(const ServeFlags& flags, int threads) {
  CISTERN_ASSIGN_OR_RETURN(const int connections, ConnectionsOf(flags));
  InferenceServerOptions options;
  options.bind = flags.bind;
  options.http_port = static_cast<int>(flags.port);
  options.grpc_port = static_cast<int>(flags.grpc_port);
  options.threads = threads;
  options.max_in_flight = flags.max_in_flight;
  options.limits.max_connections = connections;
  options.limits.max_message_bytes = flags.max_message_mb << 20;
  options.limits.memory_bytes = flags.rpc_memory_mb << 20;
  options.limits.keep_alive_seconds = static_cast<int>(flags.keep_alive_seconds);
  options.limits.max_connection_age =
      absl::Seconds(static_cast<int64_t>(flags.max_connection_age_seconds));
  options.tls = flags.tls;
  std::error_code error;  // without a current folder the path stays relative
  const auto folder = std::filesystem::absolute(flags.folder, error);
  options.log = {flags.log_requests, flags.log_share, flags.log_max_mb << 20,
                 error ? flags.folder : folder.lexically_normal().string()};
  return options;
}

std::string AddressesText(const InferenceServer& server, const ServeFlags& flags) {
  return absl::StrCat("http=", HostPortText(flags.bind, server.http_port()),
                      " grpc=", HostPortText(flags.bind, server.grpc_port()));
}

Report ReadyReport(const Predictor& predictor, const InferenceServer& server,
                   const ServeFlags& flags) {
  const std::string http = HostPortText(flags.bind, server.http_port());
  const std::string grpc = HostPortText(flags.bind, server.grpc_port());
  const uint64_t commit = predictor.version().commit;
  Report report;
  report.json["ready"] = true;
  report.json["http"] = http;
  report.json["grpc"] = grpc;
  report.json["model"] = predictor.name();
  report.json["commit"] = commit;
  report.text = absl::StrCat("ready ", AddressesText(server, flags), " model=", predictor.name(),
                             " commit=", commit, "\n");
  return report;
}

// kInvalidArgument, with a fix: no version will ever appear in `folder`. A folder that is missing
// or empty may be filled later.
absl::Status CheckFolder(const std::string& folder) {
  std::error_code error;
  if (std::filesystem::exists(folder + "/HEAD", error)) return absl::OkStatus();
  if (app::IsRunFolder(folder)) {
    return WithFix(absl::InvalidArgumentError(
                       absl::StrCat(folder, " is the folder of a training, not a serving folder")),
                   absl::StrCat("export it: cistern export serving ", folder,
                                " --out serving, then cistern serve serving"));
  }
  const bool is_file =
      std::filesystem::exists(folder, error) && !std::filesystem::is_directory(folder, error);
  const std::string other = app::OtherThingIn(folder);
  if (!is_file && other.empty()) return absl::OkStatus();
  return WithFix(absl::InvalidArgumentError(
                     is_file ? absl::StrCat(folder, " is a file, not a serving folder")
                             : absl::StrCat(folder,
                                            " is not a serving folder (it has no HEAD), and holds "
                                            "other things, such as ",
                                            other)),
                 "name a folder that cistern export serving or cistern publish writes");
}

// How much is in a folder, to notice that somebody copies into it.
struct FolderSize {
  uint64_t entries = 0, bytes = 0;
  bool operator==(const FolderSize&) const = default;
};
FolderSize SizeOf(const std::string& folder) {
  namespace fs = std::filesystem;
  FolderSize size;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    ++size.entries;
    std::error_code ignored;  // gone meanwhile
    const bool is_file = at->is_regular_file(ignored);
    const uintmax_t bytes = is_file ? at->file_size(ignored) : 0;
    if (!ignored) size.bytes += bytes;
  }
  return size;
}

// Opens the folder, and waits for its first version while there is none, or while somebody copies
// one. Null: interrupted.
absl::StatusOr<std::unique_ptr<Predictor>> AwaitPredictor(const ServeFlags& flags,
                                                          const PredictorOptions& options,
                                                          InferenceServer* server,
                                                          const std::atomic<bool>& interrupted) {
  // A folder that has not changed for so long is whole: no copy of it is under way, and no export
  // that has yet to write HEAD.
  constexpr absl::Duration kUntilWhole = absl::Seconds(2);
  FolderSize size;
  absl::Time changed = absl::InfinitePast();
  const absl::Duration pause = absl::Milliseconds(flags.poll_ms > 0 ? flags.poll_ms : 1000);
  FaultLog faults(absl::StrCat("opening ", flags.folder));
  bool waiting = false;
  while (!interrupted) {
    absl::StatusOr<std::unique_ptr<Predictor>> predictor = OpenPredictor(flags.folder, options);
    server->CountFirstOpen(predictor.ok());
    if (predictor.ok()) return predictor;
    const absl::Status& failure = predictor.status();
    const bool is_missing = absl::IsNotFound(failure);
    if (!is_missing && !waiting) {
      if (absl::IsPermissionDenied(failure) || !FixOf(failure).empty()) return failure;
      const FolderSize now = SizeOf(flags.folder);
      if (now != size) changed = absl::Now();
      size = now;
      if (absl::Now() - changed > kUntilWhole) {
        return WithFix(
            WithKind(failure, ErrorKind::kBadCheckpoint),
            "export or publish a version again (cistern export serving, cistern publish)");
      }
    }
    if (is_missing && !waiting) {
      LogWarning(absl::StrCat("waiting for a version in ", flags.folder,
                              ", which cistern export serving or cistern publish writes; ",
                              AddressesText(*server, flags), " live, but not ready"));
      waiting = true;
    }
    if (!is_missing && waiting) faults.Report(failure, "waiting for a version that can be opened");
    SleepUnless(interrupted, pause);
  }
  return nullptr;
}

// Load balancers see that the server is not ready while it still answers.
void Drain(const ServeFlags& flags, InferenceServer* server, Console* console) {
  if (flags.drain_seconds == 0) return;
  console->Say(absl::StrCat("stopping: not ready from now on, but answering for ",
                            flags.drain_seconds,
                            " s (--drain-seconds); a second signal ends the server at once"));
  server->BeginDrain();
  absl::SleepFor(absl::Seconds(static_cast<double>(flags.drain_seconds)));
}

absl::StatusOr<Report> RunServe(const ServeFlags& flags, Console& console) {
  const std::atomic<bool>* const interrupted = CatchInterrupts();
  CISTERN_RETURN_IF_ERROR(CheckFlags(flags));
  CISTERN_RETURN_IF_ERROR(CheckFolder(flags.folder));
  const int cores = CoreCount();
  PredictorOptions options;
  options.threads = flags.threads > 0 ? static_cast<int>(flags.threads) : cores;
  options.max_samples = flags.max_samples;
  options.poll_ms = static_cast<int>(flags.poll_ms);
  options.verify = flags.verify;
  options.fall_back = true;
  options.name = flags.name;
  CISTERN_ASSIGN_OR_RETURN(InferenceServerOptions server_options,
                           ServerOptionsOf(flags, options.threads));
  server_options.stopping = interrupted;
  std::unique_ptr<Predictor> predictor;  // outlives the server
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<InferenceServer> server,
                           InferenceServer::Start(server_options));
  CISTERN_ASSIGN_OR_RETURN(predictor, AwaitPredictor(flags, options, server.get(), *interrupted));
  Report report;
  report.json["ready"] = false;
  if (predictor == nullptr) return report;
  server->Serve(*predictor);
  if (!IsLoopback(flags.bind) && flags.tls.ca.empty()) {
    LogWarning(absl::StrCat(
        "listening on ", flags.bind, ": anyone who reaches these ports can ",
        flags.tls.cert.empty() ? "ask for predictions, in the clear" : "ask for predictions"));
  }
  console.Announce(ReadyReport(*predictor, *server, flags));
  while (!*interrupted) absl::SleepFor(absl::Milliseconds(50));
  Drain(flags, server.get(), &console);
  LogInfo("stopping: requests in flight are answered, new ones are refused");
  if (!server->Stop(kGrace)) LogWarning("predictions still run; waiting for them");
  report.json["commit"] = predictor->version().commit;
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
  command.Flag("--tls-client-ca", &flags->tls.ca,
               {"FILE", "Admits only clients with a certificate of this authority (PEM).",
                "--tls-client-ca clients.pem"});
}

void AddLimitFlags(Command& command, ServeFlags* flags) {
  command.Flag("--threads", &flags->threads, ThreadsText("Threads that predict"));
  command.Flag("--max-in-flight", &flags->max_in_flight,
               {"INT",
                "Requests that wait or are computed; further ones are refused at once; 0: 64 for "
                "each thread.",
                "--max-in-flight 256"});
  command.Flag("--max-samples", &flags->max_samples,
               {"INT", "Samples of one request.", "--max-samples 4096"});
  command.Flag("--max-message-mb", &flags->max_message_mb,
               {"MB", "Size of one request, in MiB.", "--max-message-mb 16"});
  command.Flag(
      "--max-connections", &flags->max_connections,
      {"INT",
       "Open connections of each protocol; 0: 1024, or fewer where the limit of open files "
       "allows fewer.",
       "--max-connections 4096"});
  command.Flag("--keep-alive-seconds", &flags->keep_alive_seconds,
               {"SECONDS",
                "Closes a connection of HTTP that has been silent for so long; more than the idle "
                "limit of the load balancer.",
                "--keep-alive-seconds 310"});
  command.Flag("--max-connection-age-seconds", &flags->max_connection_age_seconds,
               {"SECONDS",
                "Asks callers to connect anew after so long, give or take a tenth, so that they "
                "find servers that were started later; 0: never.",
                "--max-connection-age-seconds 300"});
  command.Flag("--drain-seconds", &flags->drain_seconds,
               {"SECONDS",
                "On Ctrl-C or SIGTERM: says for so long that it is not ready, and answers all the "
                "same, so that load balancers stop sending requests first.",
                "--drain-seconds 15"});
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
  command.Flag("--name", &flags->name,
               {"NAME", "The name of the model, whatever its versions say.", "--name ctr"});
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
      "Prints one line once it is ready: it waits for the first version of its folder. Ctrl-C or "
      "SIGTERM stops it, after --drain-seconds and the requests in flight; a second one ends it at "
      "once.\nHow to ask: docs/serving.md.");
  command.Does([flags](Console& console) { return RunServe(*flags, console); });
}

}  // namespace cistern
