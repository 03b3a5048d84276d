#include "cli/command/commands.h"

#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "app/admin/shrink_fleet.h"
#include "cli/command/job_console.h"
#include "cli/command/shared_flags.h"
#include "cli/terminal/progress.h"

namespace cistern::cli {
namespace {

absl::StatusOr<Report> RunShrink(const app::ShrinkFleetOptions& options, Console& console) {
  const absl::Time start = absl::Now();
  CISTERN_ASSIGN_OR_RETURN(const std::vector<app::ShrunkServer> servers,
                           app::ShrinkFleet(options, JobConsole(console).calls()));
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  Report report;
  uint64_t rows = 0, removed = 0;
  for (const app::ShrunkServer& one : servers) {
    rows += one.rows;
    removed += one.removed;
    report.json["servers"].push_back(
        {{"address", one.server}, {"rows", one.rows}, {"removed", one.removed}});
    absl::StrAppend(&report.text, one.server, "  ", one.removed, " of ", one.rows, " rows\n");
  }
  report.json["rows"] = rows;
  report.json["removed"] = removed;
  report.json["dry_run"] = options.dry_run;
  report.json["seconds"] = seconds;
  absl::StrAppend(&report.text, options.dry_run ? "would remove " : "removed ", removed, " of ",
                  rows, " rows in ", DurationText(seconds), "\n");
  return report;
}

}  // namespace

void AddShrinkCommand(Command& root) {
  auto flags = std::make_shared<app::ShrinkFleetOptions>();
  Command& command = root.Add("shrink",
                              "Decays the shows and clicks of ctr tables and removes rows that are "
                              "not worth keeping.",
                              "cistern shrink --servers 127.0.0.1:7700 --dry-run");
  AddFleetFlags(command, &flags->fleet, false);
  AddTakeOverFlag(command, &flags->fleet);
  command.Switch("--dry-run", &flags->dry_run,
                 {"", "Only counts the rows that would be removed.", "--dry-run"});
  AddDayFlag(command, &flags->day);
  AddPreconditionFlags(command, &flags->expected);
  command.Does([flags](Console& console) { return RunShrink(*flags, console); });
}

}  // namespace cistern::cli
