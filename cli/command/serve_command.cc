#include "cli/command/commands.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "app/serve/serve_folder.h"
#include "cli/terminal/interrupt.h"

namespace cistern::cli {
namespace {

absl::Status InFlags(const absl::Status& status) {
  const std::vector<std::string> options = OptionsOf(status);
  if (std::find(options.begin(), options.end(), "insecure_remote") == options.end()) return status;
  return WithFix(status,
                 "give --tls-cert and --tls-key (and --tls-client-ca to admit only clients with a "
                 "certificate), use --bind 127.0.0.1, or add --insecure-remote on a network that "
                 "you trust");
}

absl::StatusOr<Report> RunServe(const app::ServeOptions& options, Console& console) {
  app::ServeCalls calls;
  calls.stop = CatchInterrupts();
  calls.ready = [&console](const app::ServedFolder& served) {
    console.Announce({app::JsonOf(served),
                      absl::StrCat("ready http=", served.http, " grpc=", served.grpc,
                                   " model=", served.model, " commit=", served.commit, "\n"),
                      absl::OkStatus()});
  };
  calls.draining = [&] {
    console.Say(absl::StrCat("stopping: not ready from now on, but answering for ",
                             options.drain_seconds,
                             " s (--drain-seconds); a second signal ends the server at once"));
  };
  const absl::StatusOr<std::optional<uint64_t>> commit = app::ServeFolder(options, calls);
  if (!commit.ok()) return InFlags(commit.status());
  Report report;
  report.json["ready"] = false;
  if (*commit) report.json["commit"] = **commit;
  return report;
}

void AddNetworkFlags(Command& command, app::ServeOptions* flags) {
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

void AddLimitFlags(Command& command, app::ServeOptions* flags) {
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
  auto flags = std::make_shared<app::ServeOptions>();
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

}  // namespace cistern::cli
