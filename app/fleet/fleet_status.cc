#include "app/fleet/fleet_status.h"

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_join.h"
#include "app/fleet/fleet_session.h"
#include "common/base/hash_text.h"
#include "common/base/machine_limits.h"
#include "common/base/thread_pool.h"
#include "common/rpc/fleet.h"

namespace cistern::app {
namespace {

constexpr size_t kMaxAskers = 64;
constexpr int kAsks = 3;

ServerState AskServer(const ServerLink& server, bool digest) {
  ServerState state;
  state.address = server.name;
  v1::HelloRequest hello;
  hello.set_client("cistern status");
  state.reached = server.control->Hello(hello, &state.hello);
  if (!state.reached.ok()) return state;
  v1::StatsRequest request;
  *request.mutable_identity() = state.hello.identity();
  request.set_digest(digest);
  state.reached = server.control->Stats(request, &state.stats);
  return state;
}

// tiered: the server has a memory limit.
nlohmann::ordered_json JsonOf(const v1::TableStats& table, bool digest, bool tiered = false) {
  nlohmann::ordered_json json;
  json["name"] = table.name();
  json["rows"] = table.rows();
  json["embedx_rows"] = table.embedx_rows();
  json["value_bytes"] = table.value_bytes();
  json["memory_bytes"] = table.memory_bytes();
  if (tiered) {
    json["rows_in_memory"] = table.hot_rows();
    json["file_index_bytes"] = table.cold_index_bytes();
  }
  if (table.evicted_rows() > 0) json["evicted_rows"] = table.evicted_rows();
  if (table.expired_rows() > 0) json["expired_rows"] = table.expired_rows();
  if (digest) json["digest"] = HashText(table.digest());
  return json;
}

nlohmann::ordered_json JsonOf(const ServerState& server, bool digest) {
  nlohmann::ordered_json json;
  json["address"] = server.address;
  json["state"] = server.text();
  if (!server.reached.ok()) {
    json["error"] = std::string(server.reached.message());
    return json;
  }
  const v1::StatsReply& stats = server.stats;
  json["rank"] = stats.rank();
  json["server_num"] = server.hello.server_num();
  json["cluster"] = server.hello.cluster();
  json["version"] = server.hello.version();
  json["data_dir"] = server.hello.data_dir();
  json["committed_pass"] = stats.committed_pass();
  json["open_pass"] = stats.open_pass();
  json["durable"] = server.hello.durable();
  if (server.hello.durable()) {
    json["commit"] = stats.commit();
    json["state_bytes"] = stats.state_bytes();
    json["local_state"] = server.hello.local_state();
    if (stats.has_copied_commit()) json["copied_commit"] = stats.copied_commit();
  }
  const bool tiered = stats.memory_limit_bytes() > 0;
  if (tiered) {
    json["memory_limit_bytes"] = stats.memory_limit_bytes();
    json["planned_resident_bytes"] = PlannedResidentBytes(stats);
  }
  json["staged_bytes"] = stats.staged_bytes();
  json["resident_bytes"] = stats.resident_bytes();
  json["uptime_seconds"] = stats.uptime_seconds();
  json["pulled_keys"] = stats.pulled_keys();
  json["pushed_keys"] = stats.pushed_keys();
  json["tables"] = nlohmann::ordered_json::array();
  for (const v1::TableStats& table : stats.tables())
    json["tables"].push_back(JsonOf(table, digest, tiered));
  json["dense_tables"] = nlohmann::ordered_json::array();
  for (const v1::TableStats& table : stats.dense_tables()) {
    json["dense_tables"].push_back(JsonOf(table, digest));
  }
  return json;
}

std::vector<TableTotal> SumTables(const std::vector<ServerState>& servers) {
  std::map<std::string, TableTotal> sums;
  for (const ServerState& server : servers) {
    for (const auto* tables : {&server.stats.tables(), &server.stats.dense_tables()}) {
      for (const v1::TableStats& table : *tables) {
        TableTotal& sum = sums[table.name()];
        sum.name = table.name();
        sum.rows += table.rows();
        const bool all = server.stats.memory_limit_bytes() == 0 || tables != &server.stats.tables();
        sum.rows_in_memory += all ? table.rows() : table.hot_rows();
        sum.memory_bytes += table.memory_bytes();
        sum.digest += table.digest();
      }
    }
  }
  std::vector<TableTotal> totals;
  for (auto& [name, sum] : sums) totals.push_back(std::move(sum));
  return totals;
}

absl::Status DifferenceOutcome(const std::vector<std::string>& differences) {
  if (differences.empty()) return absl::OkStatus();
  return WithFix(absl::FailedPreconditionError(
                     absl::StrCat("the servers differ in ", absl::StrJoin(differences, "; in "))),
                 "name the servers of one fleet; if they are one, the next writer (cistern train) "
                 "takes durable servers to one commit, and other servers need a restart and a "
                 "cistern load");
}

}  // namespace

std::string ServerState::text() const {
  if (!reached.ok()) return "down";
  return stats.open_pass() > 0 ? "in pass" : "ready";
}

absl::Status FleetStatus::outcome() const {
  std::vector<std::string> down;
  for (const ServerState& server : servers) {
    if (server.reached.ok()) continue;
    down.push_back(absl::StrCat(server.address, ": ", server.reached.message()));
  }
  if (down.empty()) return DifferenceOutcome(differences);
  return WithFix(
      absl::UnavailableError(
          absl::StrCat(down.size(), " of ", servers.size(),
                       " servers cannot be reached: ", absl::StrJoin(down, "; "))),
      host_fix.empty()
          ? "check that a cistern-server listens at this address; look at its log, and restart it"
          : host_fix);
}

uint64_t PlannedResidentBytes(const v1::StatsReply& stats) {
  uint64_t bytes = stats.memory_limit_bytes() + kMemoryBeyondLimit;
  for (const v1::TableStats& table : stats.tables()) bytes += table.cold_index_bytes();
  return bytes;
}

FleetStatus StatusOf(std::vector<ServerState> servers, bool digest) {
  FleetStatus status;
  status.digest = digest;
  status.tiered = std::any_of(servers.begin(), servers.end(), [](const ServerState& server) {
    return server.stats.memory_limit_bytes() > 0;
  });
  status.tables = SumTables(servers);
  status.differences = DifferencesOf(servers);
  status.servers = std::move(servers);
  return status;
}

absl::StatusOr<FleetStatus> AskFleet(const FleetStatusOptions& options) {
  RemoteOptions remote;
  remote.tls = options.tls;
  remote.call_timeout = absl::Seconds(options.timeout);
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<Fleet> fleet,
                           ConnectFleet(options.servers, remote));
  const std::vector<ServerLink> links = fleet->links();
  std::vector<ServerState> states(links.size());
  ThreadPool pool(static_cast<int>(std::min(links.size(), kMaxAskers)));
  for (int ask = 0; ask < kAsks; ++ask) {
    pool.ParallelFor(links.size(),
                     [&](size_t i) { states[i] = AskServer(links[i], options.digest); });
    if (DifferencesOf(states).empty()) break;
  }
  absl::Status tls;
  for (ServerState& server : states) {
    if (!absl::IsUnavailable(server.reached) && !absl::IsDeadlineExceeded(server.reached)) continue;
    tls = TlsFault(server.address, options.tls);
    if (!tls.ok()) server.reached = AddContext(server.reached, tls.message());
    break;  // the certificates of the others will not differ much
  }
  FleetStatus status = StatusOf(std::move(states), options.digest);
  if (absl::IsUnavailable(status.outcome())) status.host_fix = UnknownHostFix(options.servers);
  if (!tls.ok()) status.host_fix = FixOf(tls);
  return status;
}

nlohmann::ordered_json JsonOf(const FleetStatus& status) {
  nlohmann::ordered_json json;
  json["servers"] = nlohmann::ordered_json::array();
  for (const ServerState& server : status.servers) {
    json["servers"].push_back(JsonOf(server, status.digest));
  }
  json["tables"] = nlohmann::ordered_json::array();
  for (const TableTotal& table : status.tables) {
    json["tables"].push_back(
        {{"name", table.name}, {"rows", table.rows}, {"memory_bytes", table.memory_bytes}});
    if (status.tiered) json["tables"].back()["rows_in_memory"] = table.rows_in_memory;
    if (status.digest) json["tables"].back()["digest"] = HashText(table.digest);
  }
  json["differences"] = status.differences;
  return json;
}

}  // namespace cistern::app
