#include "cli/session/fleet_session.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "cli/session/embedded_fleet.h"
#include "cli/terminal/exit_code.h"
#include "common/base/host_address.h"
#include "common/rpc/fleet.h"

namespace cistern {
namespace {

// A fleet over gRPC. client_ borrows the connections of fleet_.
class RemoteSession : public FleetSession {
 public:
  RemoteSession(std::unique_ptr<Fleet> fleet, std::unique_ptr<ParameterClient> client)
      : fleet_(std::move(fleet)), client_(std::move(client)) {}
  ParameterClient& client() override { return *client_; }

 private:
  const std::unique_ptr<Fleet> fleet_;
  const std::unique_ptr<ParameterClient> client_;
};

absl::StatusOr<ClientOptions> ClientOptionsOf(const FleetFlags& flags) {
  if (!(flags.connect_timeout > 0 && std::isfinite(flags.connect_timeout))) {
    return absl::InvalidArgumentError(
        absl::StrCat("--connect-timeout ", flags.connect_timeout, ": expected seconds, above 0"));
  }
  ClientOptions options;
  options.cluster = flags.cluster;
  options.worker = flags.worker;
  options.program = flags.program;
  options.take_over = flags.take_over;
  options.retry_limit = absl::Seconds(flags.connect_timeout);
  return options;
}

absl::StatusOr<std::unique_ptr<FleetSession>> ConnectRemote(const FleetFlags& flags,
                                                            const ClientOptions& options) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<Fleet> fleet, ConnectFleet(flags.servers));
  auto client = ParameterClient::Connect(fleet->links(), options);
  if (ExitCodeOf(client.status()) == ExitCode::kUnreachable) {
    const std::string unknown = UnknownHostFix(flags.servers);
    if (!unknown.empty()) return WithFix(client.status(), unknown);
    return WithFix(client.status(),
                   absl::StrCat("see which servers are up: cistern status --servers ",
                                flags.servers, "; start the others, or correct --servers"));
  }
  if (!client.ok()) return client.status();
  return std::make_unique<RemoteSession>(std::move(fleet), *std::move(client));
}

}  // namespace

void AddFleetFlags(Command& command, FleetFlags* flags, bool may_embed) {
  command.Flag("--servers", &flags->servers,
               {"HOST:PORT,...",
                may_embed ? "All servers of a fleet; by default servers run inside this process."
                          : "All servers of the fleet.",
                "--servers 127.0.0.1:7700,127.0.0.1:7701", !may_embed});
  command.Flag("--cluster", &flags->cluster,
               {"NAME", "Name of the servers' cluster.", "--cluster ads"});
  command.Flag(
      "--connect-timeout", &flags->connect_timeout,
      {"SECONDS", "How long to retry a server that does not answer.", "--connect-timeout 5"});
  if (!may_embed) return;
  command.Flag(
      "--embedded-servers", &flags->embedded_servers,
      {"INT", "Without --servers: number of servers in this process.", "--embedded-servers 2"});
}

void AddTakeOverFlag(Command& command, FleetFlags* flags) {
  const std::string name = command.name();
  flags->program = absl::StartsWith(name, "cistern") ? name : absl::StrCat("cistern ", name);
  command.Switch(
      "--take-over", &flags->take_over,
      {"",
       "Takes the fleet over from another writer: a training run started elsewhere stops "
       "at its last commit.",
       "--take-over"});
}

absl::StatusOr<std::unique_ptr<FleetSession>> FleetSession::Open(const FleetFlags& flags,
                                                                 const std::string& state_root) {
  CISTERN_ASSIGN_OR_RETURN(const ClientOptions options, ClientOptionsOf(flags));
  return flags.servers.empty() ? StartEmbeddedFleet(flags.embedded_servers, options, state_root)
                               : ConnectRemote(flags, options);
}

absl::StatusOr<uint64_t> RowsOn(ParameterClient& client) {
  std::vector<v1::StatsReply> replies(client.servers().size());
  CISTERN_RETURN_IF_ERROR(client.ForEachServer([&](size_t rank, ControlPlane& server) {
    v1::StatsRequest request;
    *request.mutable_identity() = client.identity();
    return server.Stats(request, &replies[rank]);
  }));
  uint64_t rows = 0;
  for (const v1::StatsReply& reply : replies) {
    for (const v1::TableStats& table : reply.tables()) rows += table.rows();
  }
  return rows;
}

void AddDayFlag(Command& command, uint64_t* day) {
  command.Flag("--day", day,
               {"INT",
                "Today's day number, counted as in training; required for tables whose rows record "
                "the day they were last seen (day_id_decay).",
                "--day 20778"});
}

absl::Status CheckDayFlag(uint64_t day) {
  if (day <= UINT32_MAX) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--day ", day, ": expected a day number below 2^32"));
}

std::string UnknownHostFix(const std::string& servers) {
  for (const absl::string_view text : absl::StrSplit(servers, ',')) {
    const absl::StatusOr<HostPort> server = ParseHostPort(absl::StripAsciiWhitespace(text));
    const std::string why = server.ok() ? WhyUnknown(server->host) : "";
    if (why.empty()) continue;
    return absl::StrCat(
        "the host name '", server->host, "' cannot be resolved (", why,
        "): check its spelling, and the name service of this machine (getent hosts ", server->host,
        ")");
  }
  return "";
}

absl::Status WithFleetFix(const absl::Status& status, const FleetFlags& flags) {
  if (ExitCodeOf(status) != ExitCode::kUnreachable || !FixOf(status).empty()) return status;
  const std::string unknown = UnknownHostFix(flags.servers);
  if (!unknown.empty()) return WithFix(status, unknown);
  return WithFix(status,
                 absl::StrCat("see which server is down: cistern status --servers ", flags.servers,
                              "; restart it (with --data_dir it recovers its last commit; without, "
                              "load a saved model: cistern load), and repeat this command"));
}

}  // namespace cistern
