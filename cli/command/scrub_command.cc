#include "cli/command/scrub_command.h"

#include <memory>

#include "cli/command/shared_flags.h"
#include "cli/terminal/activity.h"
#include "cli/terminal/aligned_text.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/progress.h"

namespace cistern {
namespace {

struct ScrubFlags {
  app::FleetOptions fleet;
  bool files = false;
};

constexpr char kScrubFix[] =
    "corrupt memory: restart that server, which recovers from its files; a corrupt file: restore "
    "it from a copy, or let the server write a new base before you restart it (see cistern verify "
    "DATA_DIR)";

absl::Status WorstOf(const std::vector<absl::Status>& scrubbed,
                     const std::vector<ServerLink>& servers) {
  absl::Status worst;
  for (size_t rank = 0; rank < scrubbed.size(); ++rank) {
    if (scrubbed[rank].ok() || absl::IsDataLoss(worst)) continue;
    if (worst.ok() || absl::IsDataLoss(scrubbed[rank])) {
      worst = AddContext(scrubbed[rank], servers[rank].name);
    }
  }
  return absl::IsDataLoss(worst) ? WithFix(WithKind(worst, ErrorKind::kBadCheckpoint), kScrubFix)
                                 : worst;
}

absl::StatusOr<Report> RunScrub(const ScrubFlags& flags, Console* console) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<app::FleetSession> fleet,
                           app::FleetSession::Open(flags.fleet));
  CISTERN_ASSIGN_OR_RETURN(Report report, ScrubServers(fleet->client(), flags.files, console));
  report.outcome = app::WithFleetFix(report.outcome, flags.fleet);
  return report;
}

}  // namespace

absl::StatusOr<Report> ScrubServers(ParameterClient& client, bool files, Console* console) {
  const std::vector<ServerLink>& servers = client.servers();
  std::vector<v1::ScrubReply> replies(servers.size());
  std::vector<absl::Status> scrubbed(servers.size());
  Activity activity(console, "scrubbing", "servers", servers.size());
  CISTERN_RETURN_IF_ERROR(client.ForEachServer([&](size_t rank, ControlPlane& server) {
    v1::ScrubRequest request;
    *request.mutable_identity() = client.identity();
    request.set_files(files);
    scrubbed[rank] = server.Scrub(request, &replies[rank]);
    activity.Done();
    return absl::OkStatus();
  }));
  Report report;
  report.json["servers"] = nlohmann::ordered_json::array();
  std::vector<std::vector<std::string>> rows = {{"ADDRESS", "STATE", "ROWS", "FILES", "BYTES"}};
  for (size_t rank = 0; rank < servers.size(); ++rank) {
    nlohmann::ordered_json json;
    json["address"] = servers[rank].name;
    json["good"] = scrubbed[rank].ok();
    if (scrubbed[rank].ok()) {
      const v1::ScrubReply& reply = replies[rank];
      json["rows"] = reply.rows();
      json["files"] = reply.files();
      json["bytes"] = reply.bytes();
      rows.push_back({servers[rank].name, "good", absl::StrCat(reply.rows()),
                      absl::StrCat(reply.files()), BytesText(reply.bytes())});
    } else {
      json["error"] = std::string(scrubbed[rank].message());
      const char* state = absl::IsDataLoss(scrubbed[rank]) ? "bad" : "not looked at";
      rows.push_back({servers[rank].name, state, "-", "-", "-"});
    }
    report.json["servers"].push_back(json);
  }
  report.text = AlignedText(rows);
  report.outcome = WorstOf(scrubbed, servers);
  return report;
}

void AddScrubCommand(Command& root) {
  auto flags = std::make_shared<ScrubFlags>();
  Command& command =
      root.Add("scrub", "Checks the rows in durable servers' memory against recorded digests.",
               "cistern scrub --servers 127.0.0.1:7700,127.0.0.1:7701 --files");
  AddFleetFlags(command, &flags->fleet, false);
  command.Switch("--files", &flags->files,
                 {"", "Also reads every file that a restart would recover from.", "--files"});
  command.Footer(
      "Commits wait while a server scrubs; pulls do not. Exit code 5 if a server finds "
      "a fault.");
  command.Does([flags](Console& console) { return RunScrub(*flags, &console); });
}

}  // namespace cistern
