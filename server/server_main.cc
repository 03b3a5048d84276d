// cistern-server: one server of a fleet.
//
//   cistern-server --rank=0 --server_num=2 --port=7700 --data_dir=run/data
//
// Prints one line on standard output when it is ready to serve, and logs to standard error. SIGTERM
// and SIGINT stop it cleanly. Exit codes: 0 stopped; 2 usage or configuration; 5 corrupt state on
// disk; 1 anything else, which may pass by itself: a port in use, an address that the machine does
// not have yet, a state that another process holds, a folder without permission. A supervisor
// restarts the server after 1 (deploy/systemd).
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/host_address.h"
#include "common/base/log.h"
#include "common/base/memory_exhausted.h"
#include "common/base/version.h"
#include "common/http/metrics_endpoint.h"
#include "common/io/file.h"
#include "common/manual/manual_files.h"
#include "common/rpc/descriptor_limit.h"
#include "common/rpc/listening_socket.h"
#include "common/rpc/server_host.h"
#include "common/tls/tls_files.h"
#include "server/service/server_node.h"

namespace cistern::server {
namespace {

constexpr int kStopped = 0, kFailed = 1, kUsage = 2, kBadCheckpoint = 5;
constexpr absl::Duration kGrace = absl::Seconds(10);  // for calls in flight at a stop

struct Flags {
  ServerOptions server;
  int port = 7700;
  std::string bind = "127.0.0.1";
  bool insecure_remote = false;
  TlsFiles tls;
  std::string audit_log;
  uint64_t staged_limit_mb = 8192;
  double memory_limit_mb = 0;
  std::string durability = "commit", commit_waits_for = "local";
  uint64_t merge_min_kb = 1024;
  int max_connections = 0;
  uint64_t rpc_memory_mb = 512;
  int metrics_port = -1;  // none
  std::string metrics_bind, metrics_socket;
  std::string log_level = "info", log_format = "text";
};

void AddFlags(CLI::App& app, Flags& flags) {
  ServerOptions& server = flags.server;
  app.add_option("--rank", server.rank, "Rank of this server in the fleet, from 0 (--rank=1)")
      ->capture_default_str();
  app.add_option("--server_num,--server-num", server.server_num,
                 "Number of servers in the fleet (--server_num=2)")
      ->capture_default_str();
  app.add_option("--port", flags.port, "Port to listen on; 0 picks a free one (--port=7701)")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  app.add_option(
      "--data_dir,--data-dir", server.data_dir,
      "Folder for commits and saved models, shared by all servers of the fleet; without it, "
      "nothing survives a restart, and save and load are refused; default: none "
      "(--data_dir=run/data)");
  app.add_option(
         "--durability", flags.durability,
         "With --data_dir: commit keeps every committed pass in data_dir/state, from which a "
         "restarted server recovers; none keeps passes in memory only "
         "(--durability=none)")
      ->check(CLI::IsMember({"commit", "none"}))
      ->capture_default_str();
  app.add_flag(
      "--local_state,--local-state", server.local_state,
      "With --data_dir: the folder is this server's alone, as on a disk of its own, so the "
      "servers of a fleet need no shared folder; the same on all servers; default: off "
      "(--local_state)");
  app.add_option("--commit_waits_for,--commit-waits-for", flags.commit_waits_for,
                 "With --data_dir: copy makes a commit wait until cistern ckpt push --follow, "
                 "beside this server, has copied its files, so that no commit is lost with a disk; "
                 "local does not (--commit_waits_for=copy)")
      ->check(CLI::IsMember({"local", "copy"}))
      ->capture_default_str();
  app.add_option("--merge_min_kb,--merge-min-kb", flags.merge_min_kb,
                 "Deltas on disk of less than this many KiB do not by themselves start a merge "
                 "into a new base "
                 "(--merge_min_kb=65536)")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 40))
      ->capture_default_str();
  app.add_option("--keep_commits,--keep-commits", server.keep_commits,
                 "Number of newest commits to keep on disk (--keep_commits=10)")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--cache_rate,--cache-rate", server.cache_rate,
                 "Share of the rows of each ctr table in the memory cache: the most shown ones, "
                 "chosen when a model is first loaded and when a batch model is saved, for cistern "
                 "export cache --memory-cache; 0: no cache (--cache_rate=0.00055)")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--bind", flags.bind, "Address to listen on (--bind=127.0.0.1)")
      ->capture_default_str();
  app.add_flag("--insecure_remote,--insecure-remote", flags.insecure_remote,
               "Allow --bind to an address that other machines can reach, without encryption or "
               "password; default: off (--bind=0.0.0.0 --insecure-remote)");
  app.add_option("--tls_ca,--tls-ca", flags.tls.ca,
                 "TLS: the certificate of the fleet's authority; callers must show a certificate "
                 "that it signed, with the role that their call needs (cistern certs). Files that "
                 "are replaced are read again; default: $CISTERN_TLS_CA, or none "
                 "(--tls_ca=certs/ca.crt)");
  app.add_option("--tls_cert,--tls-cert", flags.tls.cert,
                 "TLS: the certificate of this server; default: $CISTERN_TLS_CERT, or none "
                 "(--tls_cert=certs/server-0.crt)");
  app.add_option("--tls_key,--tls-key", flags.tls.key,
                 "TLS: its private key; default: $CISTERN_TLS_KEY, or none "
                 "(--tls_key=certs/server-0.key)");
  app.add_option("--audit_log,--audit-log", flags.audit_log,
                 "File to which each call that changes something is appended as a line of JSON; at "
                 "64 MiB it is renamed to FILE.1; none: no file; default: with TLS and --data_dir, "
                 "data_dir/audit-RANK.jsonl (--audit_log=/var/log/cistern/audit.jsonl)");
  app.add_option("--shard_num,--shard-num", server.shard_num,
                 "Number of shards of every table in the whole fleet, the same on all servers "
                 "(--shard_num=256)")
      ->capture_default_str();
  app.add_option("--cluster", server.cluster,
                 "Name of the fleet; callers with another name are refused (--cluster=ads)")
      ->capture_default_str();
  app.add_option("--threads", server.threads,
                 "Threads for commit, save and load; 0: one per core (--threads=4)")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--staged_limit_mb,--staged-limit-mb", flags.staged_limit_mb,
                 "Memory for the pushes of an open pass, in MiB; further pushes are refused "
                 "(--staged_limit_mb=16384)")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 30))
      ->capture_default_str();
  app.add_option("--memory_limit_mb,--memory-limit-mb", flags.memory_limit_mb,
                 "With --data_dir: memory for rows and for the pushes of a pass, in MiB; rows that "
                 "few passes need stay in the files of commits and are read from there; 0: every "
                 "row is in memory (--memory_limit_mb=16384)")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  app.add_option(
         "--max_connections,--max-connections", flags.max_connections,
         "Open connections; further ones are refused; 0: three quarters of the open files that "
         "the system allows, at most 4096 (--max_connections=2000)")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app.add_option(
         "--rpc_memory_mb,--rpc-memory-mb", flags.rpc_memory_mb,
         "Memory for calls in progress, headers and unfinished messages, in MiB; above it, the "
         "connection that holds the most is closed, and calls are refused. Whatever strangers "
         "send, "
         "connections take at most twice as much (--rpc_memory_mb=4096)")
      ->check(CLI::Range(uint64_t{256}, uint64_t{1} << 20))
      ->capture_default_str();
  app.add_option("--metrics_port,--metrics-port", flags.metrics_port,
                 "Port where Prometheus reads this server's figures, at /metrics; 0 picks a free "
                 "one; default: none (--metrics_port=9700)")
      ->check(CLI::Range(0, 65535))
      ->default_str("");
  app.add_option("--metrics_bind,--metrics-bind", flags.metrics_bind,
                 "Address of that port; any other than loopback shows the figures, which are "
                 "counts and names of tables, to everyone who reaches it; default: 127.0.0.1 "
                 "(--metrics_bind=10.0.0.7)");
  app.add_option("--metrics_socket,--metrics-socket", flags.metrics_socket,
                 "Unix socket for the same figures; default: none "
                 "(--metrics_socket=/run/cistern/server-0.sock)");
  app.add_option("--log_level,--log-level", flags.log_level,
                 "Lowest level to log "
                 "(--log_level=warning)")
      ->check(CLI::IsMember({"info", "warning", "error", "off"}))
      ->capture_default_str();
  app.add_option("--log_format,--log-format", flags.log_format,
                 "Form of the lines of the log; json: an object a line (--log_format=json)")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.set_version_flag("--version", std::string("cistern-server ") + kVersion);
}

absl::Status CheckFlags(const Flags& flags) {
  if (!IsLoopback(flags.bind) && !flags.insecure_remote && !flags.tls.on()) {
    CISTERN_RETURN_IF_ERROR(ListeningSockets::CheckAddress(flags.bind));
    return absl::InvalidArgumentError(absl::StrCat(
        "--bind=", flags.bind,
        " admits other machines, which needs TLS: add --tls_ca, --tls_cert and --tls_key (cistern "
        "certs makes them); or use --bind=127.0.0.1; or add --insecure-remote on a network where "
        "everyone may read and change the tables"));
  }
  if (!flags.metrics_bind.empty() && flags.metrics_port < 0) {
    return absl::InvalidArgumentError(
        "--metrics_bind is an address without a port: add --metrics_port");
  }
  if (flags.server.data_dir.empty()) return absl::OkStatus();
  return AddContext(MakeFolders(flags.server.data_dir), "--data_dir");
}

// Messages of some 100 KB are allocated and freed thousands of times a second. glibc would map,
// fault in and unmap each; on the heap they are 20 to 60 % faster.
//
// A server with a memory limit reads files meanwhile, which takes longer than that. It returns what
// it frees, and has few heaps that keep something: otherwise 0.5 GiB of limit took 0.75 of memory.
void KeepFreedMemory(bool limited) {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, limited ? 8 << 20 : 512 << 20);
  mallopt(M_TOP_PAD, limited ? 1 << 20 : 64 << 20);
  if (limited) mallopt(M_ARENA_MAX, 2);
}

// At least one byte if there is a limit at all: 0 is none.
uint64_t MemoryLimitBytes(double mebibytes) {
  return static_cast<uint64_t>(std::ceil(mebibytes * (1 << 20)));
}

// The path of the audit log; empty: none.
std::string AuditLogOf(const Flags& flags) {
  if (flags.audit_log == "none") return "";
  if (!flags.audit_log.empty() || !flags.tls.on() || flags.server.data_dir.empty()) {
    return flags.audit_log;
  }
  return absl::StrCat(flags.server.data_dir, "/audit-", flags.server.rank, ".jsonl");
}

// The limits of the host, and how it returns to the system the memory that strangers made it take.
absl::StatusOr<HostOptions> HostOptionsOf(const Flags& flags) {
  HostOptions options;
  CISTERN_ASSIGN_OR_RETURN(options.max_connections,
                           ConnectionLimit(RaiseDescriptorLimit(), flags.max_connections));
  options.memory_bytes = flags.rpc_memory_mb << 20;
  options.tls = flags.tls;
  options.cluster = flags.server.cluster;
  options.rank = flags.server.rank;
  options.audit_log = AuditLogOf(flags);
  options.give_memory_back = [] { malloc_trim(0); };
  return options;
}

// Makes a write beyond the file size limit (ulimit -f) fail, which is reported, instead of ending
// the process silently.
void IgnoreFileSizeSignal() {
  signal(SIGXFSZ, SIG_IGN);
}

// Blocks SIGTERM and SIGINT so that sigwait receives them; every thread started later inherits
// this.
sigset_t BlockStopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// The message, followed by the flags of its options: "... (--port)".
std::string MessageOf(const absl::Status& status) {
  std::vector<std::string> flags = OptionsOf(status);
  for (std::string& flag : flags) {
    flag = absl::StrCat("--", absl::StripPrefix(flag, "cistern-server."));
  }
  return absl::StrCat(status.message(), flags.empty() ? "" : " (", absl::StrJoin(flags, ", "),
                      flags.empty() ? "" : ")");
}

int Fail(const absl::Status& status) {
  const std::string message = absl::StrCat("cistern-server: ", MessageOf(status));
  std::fprintf(stderr, "%s\n",
               LogsJson() ? JsonLogLine("error", message).c_str() : message.c_str());
  if (absl::IsDataLoss(status)) return kBadCheckpoint;
  return absl::IsInvalidArgument(status) ? kUsage : kFailed;
}

// The endpoint of metrics; null: none is asked for.
absl::StatusOr<std::unique_ptr<MetricsEndpoint>> StartMetrics(const Flags& flags, ServerNode* node,
                                                              const ServerHost* host) {
  MetricsPlace place;
  if (flags.metrics_port >= 0) place.port = flags.metrics_port;
  if (!flags.metrics_bind.empty()) place.bind = flags.metrics_bind;
  place.socket = flags.metrics_socket;
  if (!place.is_set()) return nullptr;
  return MetricsEndpoint::Start(place,
                                [node, host] { return node->MetricsText() + host->MetricsText(); });
}

int Serve(const Flags& flags) {
  const sigset_t signals = BlockStopSignals();
  IgnoreFileSizeSignal();
  absl::StatusOr<HostOptions> options = HostOptionsOf(flags);
  if (!options.ok()) return Fail(options.status());
  absl::StatusOr<std::unique_ptr<ServerNode>> node = ServerNode::Create(flags.server);
  if (!node.ok()) return Fail(node.status());
  options->refused = [&node](absl::string_view method, const absl::Status& status) {
    (*node)->NoteRefusal(method, status);
  };
  absl::StatusOr<std::unique_ptr<ServerHost>> host =
      ServerHost::Start(flags.bind, flags.port, &(*node)->control(), &(*node)->data(), *options);
  if (!host.ok()) return Fail(host.status());
  if (!IsLoopback(flags.bind) && !flags.tls.on()) {
    LogWarning(absl::StrCat("listening on ", flags.bind,
                            " without encryption or password: anyone who reaches this port can "
                            "read and change the tables"));
  }
  const absl::StatusOr<std::unique_ptr<MetricsEndpoint>> metrics =
      StartMetrics(flags, node->get(), host->get());
  if (!metrics.ok()) return Fail(metrics.status());
  const std::string where = *metrics == nullptr ? "" : " metrics=" + (*metrics)->Where();
  std::printf("cistern-server rank=%u port=%d ready%s\n", flags.server.rank, (*host)->port(),
              where.c_str());
  std::fflush(stdout);

  int signal = 0;
  if (sigwait(&signals, &signal) != 0) return kFailed;
  LogInfo(absl::StrCat("stopping on ", signal == SIGTERM ? "SIGTERM" : "SIGINT"));
  if (!(*host)->Stop(kGrace)) {
    // Committed state is on disk; whatever these calls still write is not part of a commit.
    LogWarning(absl::StrCat("stopped with calls in progress that did not end within ",
                            absl::FormatDuration(kGrace), "; their callers see a lost connection"));
    _exit(kStopped);
  }
  LogInfo("stopped");
  return kStopped;
}

// "--data_dir=" without a value, as from an unset variable, would take the next word as its value.
absl::Status CheckWords(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const absl::string_view word = argv[i];
    if (!absl::StartsWith(word, "--") || !absl::EndsWith(word, "=")) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(word, " has no value: add one, or leave the flag out"));
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  if (const absl::Status status = CheckWords(argc, argv); !status.ok()) return Fail(status);
  Flags flags;
  flags.tls = TlsFromEnvironment();
  CLI::App app("cistern-server: holds its shards of every table of a fleet", "cistern-server");
  AddFlags(app, flags);
  LocalFileSystem files;
  const std::string program = absl::StrCat("cistern-server ", kVersion);
  if (const auto written = WriteManual(app, program, argc, argv, files)) {
    return written->ok() ? kStopped : Fail(*written);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kStopped : kUsage;
  }
  if (const absl::Status status = CheckFlags(flags); !status.ok()) return Fail(status);
  flags.server.staged_limit_bytes = flags.staged_limit_mb << 20;
  flags.server.memory_limit_bytes = MemoryLimitBytes(flags.memory_limit_mb);
  flags.server.compact_min_bytes = flags.merge_min_kb << 10;
  flags.server.waits_for_copy = flags.commit_waits_for == "copy";
  flags.server.durable = !flags.server.data_dir.empty() && flags.durability == "commit";
  SetLogLevel(flags.log_level);
  SetLogFormat(flags.log_format);
  SetLogName(absl::StrCat("server-", flags.server.rank));
  KeepFreedMemory(flags.server.memory_limit_bytes > 0);
  ExplainMemoryExhaustion("cistern-server",
                          "use more servers, make passes smaller, or lower --staged_limit_mb");
  return Serve(flags);
}

}  // namespace
}  // namespace cistern::server

int main(int argc, char** argv) {
  return cistern::server::Main(argc, argv);
}
