#include "app/fleet/fleet_session.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "app/fleet/embedded_fleet.h"
#include "common/base/host_address.h"
#include "common/rpc/fleet.h"
#include "common/tls/tls_probe.h"

namespace cistern::app {
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

bool IsUnreachable(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

absl::StatusOr<ClientOptions> ClientOptionsOf(const FleetOptions& fleet) {
  if (!(fleet.connect_timeout > 0 && std::isfinite(fleet.connect_timeout))) {
    return WithOptions(absl::InvalidArgumentError(absl::StrCat(
                           "a timeout of ", fleet.connect_timeout, ": expected seconds, above 0")),
                       {"connect_timeout"});
  }
  ClientOptions options;
  options.cluster = fleet.cluster;
  options.worker = fleet.worker;
  options.program = fleet.program;
  options.run = fleet.run;
  options.take_over = fleet.take_over;
  options.retry_limit = absl::Seconds(fleet.connect_timeout);
  return options;
}

absl::StatusOr<std::unique_ptr<FleetSession>> ConnectRemote(const FleetOptions& fleet,
                                                            const ClientOptions& options) {
  RemoteOptions remote;
  remote.tls = fleet.tls;
  remote.trace = fleet.trace;
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<Fleet> connected, ConnectFleet(fleet.servers, remote));
  auto client = ParameterClient::Connect(connected->links(), options);
  if (IsUnreachable(client.status())) {
    const std::string unknown = UnknownHostFix(fleet.servers);
    if (!unknown.empty()) return WithFix(client.status(), unknown);
    const absl::Status tls = TlsFault(fleet.servers, fleet.tls);
    if (!tls.ok()) {
      return WithFix(AddContext(client.status(), tls.message()), FixOf(tls));
    }
    return WithFix(WithOptions(client.status(), {StatusOption(fleet)}),
                   "see which servers are up; start the others, or correct the addresses");
  }
  if (!client.ok()) return client.status();
  return std::make_unique<RemoteSession>(std::move(connected), *std::move(client));
}

}  // namespace

absl::StatusOr<std::unique_ptr<FleetSession>> FleetSession::Open(const FleetOptions& fleet,
                                                                 const std::string& state_root) {
  CISTERN_ASSIGN_OR_RETURN(const ClientOptions options, ClientOptionsOf(fleet));
  if (!fleet.servers.empty()) return ConnectRemote(fleet, options);
  if (!(fleet.memory_limit_mb >= 0 && fleet.memory_limit_mb <= 1e9)) {
    return WithOptions(absl::InvalidArgumentError(absl::StrCat(
                           "a memory limit of ", fleet.memory_limit_mb, " MiB: expected 0 to 1e9")),
                       {"memory_limit_mb"});
  }
  if ((fleet.memory_limit_mb > 0 || !fleet.pass_caches.empty()) && state_root.empty()) {
    return WithOptions(
        absl::InvalidArgumentError("a memory limit needs commits on disk, because rows that leave "
                                   "memory are read from their files"),
        {"memory_limit_mb", "durability"});
  }
  return StartEmbeddedFleet(fleet, options, state_root);
}

absl::StatusOr<std::vector<v1::StatsReply>> StatsOn(ParameterClient& client, bool digest) {
  std::vector<v1::StatsReply> replies(client.servers().size());
  CISTERN_RETURN_IF_ERROR(client.ForEachServer([&](size_t rank, ControlPlane& server) {
    v1::StatsRequest request;
    *request.mutable_identity() = client.identity();
    request.set_digest(digest);
    return server.Stats(request, &replies[rank]);
  }));
  return replies;
}

uint64_t RowsOf(const v1::StatsReply& stats) {
  uint64_t rows = 0;
  for (const v1::TableStats& table : stats.tables()) rows += table.rows();
  return rows;
}

absl::StatusOr<uint64_t> RowsOn(ParameterClient& client) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<v1::StatsReply> replies, StatsOn(client));
  uint64_t rows = 0;
  for (const v1::StatsReply& reply : replies) rows += RowsOf(reply);
  return rows;
}

absl::Status CheckDay(uint64_t day) {
  if (day <= UINT32_MAX) return absl::OkStatus();
  return WithOptions(
      absl::InvalidArgumentError(absl::StrCat("day ", day, ": expected a day number below 2^32")),
      {"day"});
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

absl::Status TlsFault(const std::string& servers, const TlsFiles& tls) {
  constexpr absl::Duration kLimit = absl::Seconds(3);
  for (const absl::string_view text : absl::StrSplit(servers, ',')) {
    const absl::StatusOr<HostPort> server = ParseHostPort(absl::StripAsciiWhitespace(text));
    if (!server.ok()) continue;
    const absl::Status fault = ProbeTls(*server, tls, kLimit);
    if (!fault.ok()) return fault;
  }
  return absl::OkStatus();
}

std::string StatusOption(const FleetOptions& fleet) {
  return absl::StrCat("status.servers=", absl::StrReplaceAll(fleet.servers, {{" ", ""}}));
}

absl::Status WithFleetFix(const absl::Status& status, const FleetOptions& fleet) {
  if (!IsUnreachable(status) || !FixOf(status).empty()) return status;
  const std::string unknown = UnknownHostFix(fleet.servers);
  if (!unknown.empty()) return WithFix(status, unknown);
  return WithFix(
      WithOptions(status, {StatusOption(fleet)}),
      "see which server is down; restart it (with a data_dir it recovers its last commit; "
      "without, load a saved model), and repeat this command");
}

}  // namespace cistern::app
