// cistern ckpt repair-epochs: the command for server/checkpoint/repair_terms.h.
#include "server/checkpoint/repair_terms.h"

#include <memory>

#include "absl/strings/str_join.h"
#include "app/state/saved_place.h"
#include "cli/command/ckpt_commands.h"
#include "cli/terminal/exit_code.h"

namespace cistern {
namespace {

absl::Status WithRepairFix(const absl::Status& status) {
  if (absl::IsFailedPrecondition(status)) {
    return WithFix(status, "stop every server that uses this state, then repeat this command");
  }
  return WithKind(status, ErrorKind::kBadCheckpoint);
}

}  // namespace

absl::StatusOr<Report> RunCkptRepairTerms(const std::string& path) {
  LocalFileSystem files;
  const absl::StatusOr<std::unique_ptr<StateFolder>> state = app::FindState(files, path);
  if (absl::IsNotFound(state.status())) {
    return WithFix(MissingIsUsage(state.status()),
                   "name the --data_dir of the servers, or the folder state in it");
  }
  CISTERN_RETURN_IF_ERROR(state.status());
  const absl::StatusOr<RepairedTerms> repaired = RepairTerms(files, (*state)->path());
  if (!repaired.ok()) return WithRepairFix(repaired.status());
  Report report;
  report.json = {
      {"path", (*state)->path()}, {"removed", repaired->removed}, {"epoch", repaired->newest}};
  report.text = repaired->removed.empty()
                    ? absl::StrCat((*state)->path(), ": nothing to repair; the newest term is ",
                                   repaired->newest, "\n")
                    : absl::StrCat((*state)->path(), ": removed the claims of terms ",
                                   absl::StrJoin(repaired->removed, ", "), "; the newest term is ",
                                   repaired->newest, " now\n");
  return report;
}

void AddCkptRepairTermsCommand(Command& ckpt) {
  auto path = std::make_shared<std::string>();
  Command& command =
      ckpt.Add("repair-epochs", "Removes claims of terms so high that no later writer can claim.",
               "cistern ckpt repair-epochs saved");
  command.Argument(
      "STATE", path.get(),
      {"DIR", "A data_dir of stopped servers, or the state folder in it.", "saved", kRequired});
  command.Footer(
      "Each writer must claim a higher term (epoch) than the last, so a claim of 2^48 or more\n"
      "locks all later writers out. This command removes such claims and claims the term above\n"
      "all others in the folder, so that older writers stay fenced. Commits and row files do not\n"
      "change.");
  command.Does([path](Console&) { return RunCkptRepairTerms(*path); });
}

}  // namespace cistern
