// Formats the report of cistern status; status_command.cc asks the servers.
#include <algorithm>
#include <map>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/command/status_command.h"
#include "cli/terminal/aligned_text.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/progress.h"
#include "common/base/hash_text.h"

namespace cistern {
namespace {

std::string StateText(const ServerState& server) {
  if (!server.reached.ok()) return "down";
  return server.stats.open_pass() > 0 ? "in pass" : "ready";
}

// "-" if commits are kept in memory only.
std::string CommitText(const ServerState& server) {
  return server.hello.durable() ? absl::StrCat(server.stats.commit()) : "-";
}

std::string StateBytesText(const ServerState& server) {
  return server.hello.durable() ? BytesText(server.stats.state_bytes()) : "-";
}

std::string RowsText(const v1::StatsReply& stats) {
  if (stats.tables().empty()) return "no tables";
  std::vector<std::string> words;
  for (const v1::TableStats& table : stats.tables()) {
    words.push_back(absl::StrCat(table.name(), "=", table.rows()));
  }
  return absl::StrJoin(words, " ");
}

std::vector<std::string> RowOf(const ServerState& server) {
  if (!server.reached.ok()) {
    return {"-", server.address, StateText(server), "-", "-", "-", "-", "-", "-", "-", ""};
  }
  const v1::StatsReply& stats = server.stats;
  return {absl::StrCat(stats.rank(), "/", server.hello.server_num()),
          server.address,
          StateText(server),
          absl::StrCat(stats.committed_pass()),
          CommitText(server),
          StateBytesText(server),
          BytesText(stats.resident_bytes()),
          CountText(static_cast<double>(stats.pulled_keys())),
          CountText(static_cast<double>(stats.pushed_keys())),
          DurationText(stats.uptime_seconds()),
          RowsText(stats)};
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
  if (digest) json["digest"] = HashText(table.digest());
  return json;
}

nlohmann::ordered_json JsonOf(const ServerState& server, bool digest) {
  nlohmann::ordered_json json;
  json["address"] = server.address;
  json["state"] = StateText(server);
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
  }
  const bool tiered = stats.memory_limit_bytes() > 0;
  if (tiered) json["memory_limit_bytes"] = stats.memory_limit_bytes();
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

struct TableSum {
  uint64_t rows = 0, rows_in_memory = 0, memory_bytes = 0, digest = 0;
};

// Sums over servers. The digest of a whole table is the sum of its servers' digests (modulo 2^64).
std::map<std::string, TableSum> SumTables(const std::vector<ServerState>& servers) {
  std::map<std::string, TableSum> sums;
  for (const ServerState& server : servers) {
    for (const auto* tables : {&server.stats.tables(), &server.stats.dense_tables()}) {
      for (const v1::TableStats& table : *tables) {
        TableSum& sum = sums[table.name()];
        sum.rows += table.rows();
        const bool all = server.stats.memory_limit_bytes() == 0 || tables != &server.stats.tables();
        sum.rows_in_memory += all ? table.rows() : table.hot_rows();
        sum.memory_bytes += table.memory_bytes();
        sum.digest += table.digest();
      }
    }
  }
  return sums;
}

void AppendSums(const std::vector<ServerState>& servers, bool digest, Report* report) {
  const auto sums = SumTables(servers);
  report->json["tables"] = nlohmann::ordered_json::array();
  if (sums.empty()) return;
  const bool tiered = std::any_of(servers.begin(), servers.end(), [](const ServerState& server) {
    return server.stats.memory_limit_bytes() > 0;
  });
  std::vector<std::vector<std::string>> rows = {{"TABLE", "ROWS", "MEMORY"}};
  if (tiered) rows[0].push_back("IN MEMORY");
  if (digest) rows[0].push_back("DIGEST");
  for (const auto& [name, sum] : sums) {
    nlohmann::ordered_json json;
    json["name"] = name;
    json["rows"] = sum.rows;
    json["memory_bytes"] = sum.memory_bytes;
    if (tiered) json["rows_in_memory"] = sum.rows_in_memory;
    rows.push_back({name, absl::StrCat(sum.rows), BytesText(sum.memory_bytes)});
    if (tiered) {
      rows.back().push_back(
          absl::StrCat(100 * sum.rows_in_memory / std::max<uint64_t>(1, sum.rows), "%"));
    }
    if (digest) json["digest"] = HashText(sum.digest);
    if (digest) rows.back().push_back(HashText(sum.digest));
    report->json["tables"].push_back(json);
  }
  absl::StrAppend(&report->text, "\n", AlignedText(rows));
}

absl::Status DifferenceOutcome(const std::vector<std::string>& differences) {
  if (differences.empty()) return absl::OkStatus();
  return WithFix(absl::FailedPreconditionError(
                     absl::StrCat("the servers differ in ", absl::StrJoin(differences, "; in "))),
                 "name the servers of one fleet; if they are one, the next writer (cistern train) "
                 "takes durable servers to one commit, and other servers need a restart and a "
                 "cistern load");
}

absl::Status OutcomeOf(const std::vector<ServerState>& servers,
                       const std::vector<std::string>& differences) {
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
      "check that a cistern-server listens at this address; look at its log, and restart it");
}

}  // namespace

Report ReportOf(const std::vector<ServerState>& servers, bool digest) {
  Report report;
  report.json["servers"] = nlohmann::ordered_json::array();
  std::vector<std::vector<std::string>> rows = {{"RANK", "ADDRESS", "STATE", "PASS", "COMMIT",
                                                 "ON DISK", "MEMORY", "PULLED", "PUSHED", "UPTIME",
                                                 "ROWS"}};
  for (const ServerState& server : servers) {
    report.json["servers"].push_back(JsonOf(server, digest));
    rows.push_back(RowOf(server));
  }
  report.text = AlignedText(rows);
  AppendSums(servers, digest, &report);
  const std::vector<std::string> differences = DifferencesOf(servers);
  report.json["differences"] = differences;
  report.outcome = OutcomeOf(servers, differences);
  return report;
}

}  // namespace cistern
