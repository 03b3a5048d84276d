#include "cli/command/shrink_command.h"

#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "cli/command/shared_flags.h"
#include "cli/terminal/activity.h"
#include "cli/terminal/progress.h"

namespace cistern {
namespace {

absl::Status ShrinkServers(const ShrinkFlags& flags, ParameterClient& client, Activity& activity,
                           std::vector<v1::ShrinkReply>* replies) {
  // A dry run changes nothing and claims no term, so training can continue meanwhile.
  CISTERN_RETURN_IF_ERROR(app::CheckExpectedPass(client, flags.expected));
  if (!flags.dry_run) {
    CISTERN_RETURN_IF_ERROR(client.ClaimTerm());
    CISTERN_RETURN_IF_ERROR(app::CheckExpected(client, flags.expected));
  }
  const auto shrink = [&](size_t rank, ControlPlane& server, uint64_t changes) -> absl::Status {
    v1::ShrinkRequest request;
    *request.mutable_identity() = client.identity();
    request.set_dry_run(flags.dry_run);
    request.set_day(static_cast<uint32_t>(flags.day));
    request.set_changes(changes);
    CISTERN_RETURN_IF_ERROR(server.Shrink(request, &(*replies)[rank]));
    activity.Done();
    return absl::OkStatus();
  };
  if (!flags.dry_run) return client.ChangeInPlace(shrink);
  return client.ForEachServer(
      [&](size_t rank, ControlPlane& server) { return shrink(rank, server, 0); });
}

}  // namespace

absl::StatusOr<Report> RunShrink(const ShrinkFlags& flags, Console* console) {
  CISTERN_RETURN_IF_ERROR(app::CheckDay(flags.day));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<app::FleetSession> fleet,
                           app::FleetSession::Open(flags.fleet));
  ParameterClient& client = fleet->client();
  const absl::Time start = absl::Now();
  std::vector<v1::ShrinkReply> replies(client.servers().size());
  {
    Activity activity(console, "shrinking", "servers", replies.size());
    CISTERN_RETURN_IF_ERROR(
        app::WithFleetFix(ShrinkServers(flags, client, activity, &replies), flags.fleet));
  }
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);

  Report report;
  uint64_t rows = 0, removed = 0;
  for (size_t rank = 0; rank < replies.size(); ++rank) {
    const std::string& address = client.servers()[rank].name;
    rows += replies[rank].rows();
    removed += replies[rank].removed();
    report.json["servers"].push_back({{"address", address},
                                      {"rows", replies[rank].rows()},
                                      {"removed", replies[rank].removed()}});
    absl::StrAppend(&report.text, address, "  ", replies[rank].removed(), " of ",
                    replies[rank].rows(), " rows\n");
  }
  report.json["rows"] = rows;
  report.json["removed"] = removed;
  report.json["dry_run"] = flags.dry_run;
  report.json["seconds"] = seconds;
  absl::StrAppend(&report.text, flags.dry_run ? "would remove " : "removed ", removed, " of ", rows,
                  " rows in ", DurationText(seconds), "\n");
  return report;
}

void AddShrinkCommand(Command& root) {
  auto flags = std::make_shared<ShrinkFlags>();
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
  command.Does([flags](Console& console) { return RunShrink(*flags, &console); });
}

}  // namespace cistern
