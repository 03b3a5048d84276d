#include "cli/command/scrub_command.h"

#include <memory>

#include "app/fleet/fleet_session.h"
#include "cli/command/job_console.h"
#include "cli/command/shared_flags.h"
#include "cli/terminal/aligned_text.h"
#include "cli/terminal/progress.h"

namespace cistern::cli {
namespace {

struct ScrubFlags {
  app::FleetOptions fleet;
  bool files = false;
};

absl::StatusOr<Report> RunScrub(const ScrubFlags& flags, Console& console) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<app::FleetSession> fleet,
                           app::FleetSession::Open(flags.fleet));
  CISTERN_ASSIGN_OR_RETURN(
      const app::ScrubResult result,
      app::ScrubServers(fleet->client(), flags.files, JobConsole(console).calls()));
  Report report = ScrubReport(result);
  report.outcome = app::WithFleetFix(report.outcome, flags.fleet);
  return report;
}

}  // namespace

Report ScrubReport(const app::ScrubResult& result) {
  Report report;
  report.json["servers"] = nlohmann::ordered_json::array();
  std::vector<std::vector<std::string>> rows = {{"ADDRESS", "STATE", "ROWS", "FILES", "BYTES"}};
  for (const app::ScrubbedServer& one : result.servers) {
    nlohmann::ordered_json json;
    json["address"] = one.server;
    json["good"] = one.state.ok();
    if (one.state.ok()) {
      json["rows"] = one.checked.rows();
      json["files"] = one.checked.files();
      json["bytes"] = one.checked.bytes();
      rows.push_back({one.server, "good", absl::StrCat(one.checked.rows()),
                      absl::StrCat(one.checked.files()), BytesText(one.checked.bytes())});
    } else {
      json["error"] = std::string(one.state.message());
      const char* const state = absl::IsDataLoss(one.state) ? "bad" : "not looked at";
      rows.push_back({one.server, state, "-", "-", "-"});
    }
    report.json["servers"].push_back(json);
  }
  report.text = AlignedText(rows);
  report.outcome = result.outcome();
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
  command.Does([flags](Console& console) { return RunScrub(*flags, console); });
}

}  // namespace cistern::cli
