// cistern ckpt repair-epochs: the flags of server/checkpoint/repair_epochs.h.
#include "server/checkpoint/repair_epochs.h"

#include <memory>

#include "absl/strings/str_join.h"
#include "cli/command/ckpt_commands.h"
#include "cli/session/saved_place.h"
#include "cli/terminal/exit_code.h"

namespace cistern {
namespace {

absl::Status WithRepairFix(const absl::Status& status) {
  if (absl::IsFailedPrecondition(status)) {
    return WithFix(status, "stop every server of this state, then run this again");
  }
  return FromCheckpoint(status);
}

}  // namespace

absl::StatusOr<Report> RunCkptRepairEpochs(const std::string& path) {
  LocalFileSystem files;
  const absl::StatusOr<std::unique_ptr<StateFolder>> state = FindState(files, path);
  if (absl::IsNotFound(state.status())) {
    return WithFix(absl::InvalidArgumentError(state.status().message()),
                   "name the --data_dir of the servers, or the folder state in it");
  }
  CISTERN_RETURN_IF_ERROR(state.status());
  const absl::StatusOr<RepairedEpochs> repaired = RepairEpochs(files, (*state)->path());
  if (!repaired.ok()) return WithRepairFix(repaired.status());
  Report report;
  report.json = {
      {"path", (*state)->path()}, {"removed", repaired->removed}, {"epoch", repaired->newest}};
  report.text = repaired->removed.empty()
                    ? absl::StrCat((*state)->path(), ": nothing to repair; the newest epoch is ",
                                   repaired->newest, "\n")
                    : absl::StrCat((*state)->path(), ": removed the claims of epochs ",
                                   absl::StrJoin(repaired->removed, ", "), "; the newest epoch is ",
                                   repaired->newest, " now\n");
  return report;
}

void AddCkptRepairEpochsCommand(Command& ckpt) {
  auto path = std::make_shared<std::string>();
  Command& command =
      ckpt.Add("repair-epochs", "Removes claims that leave no epoch for the next writer.",
               "cistern ckpt repair-epochs saved");
  command.Argument(
      "STATE", path.get(),
      {"DIR", "A data_dir of stopped servers, or the state folder in it.", "saved", kRequired});
  command.Footer(
      "Writers claim one epoch after the other, so one that claimed 2^48 or more shuts all others\n"
      "out. This removes such claims, and claims the epoch above every other one that the folder\n"
      "knows, so older writers stay fenced. Commits and row files are not touched.");
  command.Does([path](Console&) { return RunCkptRepairEpochs(*path); });
}

}  // namespace cistern
