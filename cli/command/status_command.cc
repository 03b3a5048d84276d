#include "cli/command/status_command.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_join.h"
#include "cli/command/shared_flags.h"
#include "cli/terminal/aligned_text.h"
#include "common/base/amount_text.h"
#include "common/base/hash_text.h"

namespace cistern::cli {
namespace {

// "-" if commits are kept in memory only. "12 (copy: 11)" if a program copies them.
std::string CommitText(const app::ServerState& server) {
  if (!server.hello.durable()) return "-";
  const v1::StatsReply& stats = server.stats;
  return absl::StrCat(stats.commit(), stats.has_copied_commit()
                                          ? absl::StrCat(" (copy: ", stats.copied_commit(), ")")
                                          : "");
}

std::string StateBytesText(const app::ServerState& server) {
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

std::vector<std::string> RowOf(const app::ServerState& server) {
  if (!server.reached.ok()) {
    return {"-", server.address, server.text(), "-", "-", "-", "-", "-", "-", "-", ""};
  }
  const auto& stats = server.stats;
  return {absl::StrCat(stats.rank(), "/", server.hello.server_num()),
          server.address,
          server.text(),
          absl::StrCat(stats.committed_pass()),
          CommitText(server),
          StateBytesText(server),
          BytesText(stats.resident_bytes()),
          CountText(static_cast<double>(stats.pulled_keys())),
          CountText(static_cast<double>(stats.pushed_keys())),
          DurationText(stats.uptime_seconds()),
          RowsText(stats)};
}

std::string TotalsText(const app::FleetStatus& status) {
  if (status.tables.empty()) return "";
  std::vector<std::vector<std::string>> rows = {{"TABLE", "ROWS", "MEMORY"}};
  if (status.tiered) rows[0].push_back("IN MEMORY");
  if (status.digest) rows[0].push_back("DIGEST");
  for (const app::TableTotal& table : status.tables) {
    rows.push_back({table.name, absl::StrCat(table.rows), BytesText(table.memory_bytes)});
    if (status.tiered) {
      rows.back().push_back(
          absl::StrCat(100 * table.rows_in_memory / std::max<uint64_t>(1, table.rows), "%"));
    }
    if (status.digest) rows.back().push_back(HashText(table.digest));
  }
  return absl::StrCat("\n", AlignedText(rows));
}

// The limits of servers whose rows may be in files.
std::string LimitsText(const app::FleetStatus& status) {
  std::string text;
  for (const app::ServerState& server : status.servers) {
    const uint64_t limit = server.stats.memory_limit_bytes();
    if (!server.reached.ok() || limit == 0) continue;
    absl::StrAppend(&text, "memory limit of server ", server.stats.rank(), ": ", BytesText(limit),
                    " for rows; the process takes about ",
                    BytesText(app::PlannedResidentBytes(server.stats)), "\n");
  }
  return text.empty() ? text : absl::StrCat("\n", text);
}

}  // namespace

Report ReportOf(const app::FleetStatus& status) {
  std::vector<std::vector<std::string>> rows = {{"RANK", "ADDRESS", "STATE", "PASS", "COMMIT",
                                                 "ON DISK", "MEMORY", "PULLED", "PUSHED", "UPTIME",
                                                 "ROWS"}};
  for (const app::ServerState& server : status.servers) rows.push_back(RowOf(server));
  return {app::JsonOf(status), AlignedText(rows) + TotalsText(status) + LimitsText(status),
          status.outcome()};
}

void AddStatusCommand(Command& root) {
  auto options = std::make_shared<app::FleetStatusOptions>();
  Command& command = root.Add("status", "Prints the state and contents of each server of a fleet.",
                              "cistern status --servers 127.0.0.1:7700,127.0.0.1:7701");
  command.Flag("--servers", &options->servers,
               {"HOST:PORT,...", "The servers to ask.", "--servers 127.0.0.1:7700,127.0.0.1:7701",
                kRequired});
  AddTlsFlags(command, &options->tls);
  command.Switch("--digest", &options->digest,
                 {"",
                  "Also prints a digest of every table, which depends on its rows only, not on the "
                  "servers that hold them. Reads every row.",
                  "--digest"});
  command.Flag("--timeout", &options->timeout,
               {"SECONDS", "How long to wait for an answer.", "--timeout 2"});
  command.Does([options](Console&) -> absl::StatusOr<Report> {
    CISTERN_ASSIGN_OR_RETURN(const app::FleetStatus status, app::AskFleet(*options));
    return ReportOf(status);
  });
}

}  // namespace cistern::cli
