// cistern ckpt repair-epochs: the command for app/state/repair_state.h.
#include <memory>

#include "absl/strings/str_join.h"
#include "app/state/repair_state.h"
#include "cli/command/ckpt_commands.h"

namespace cistern::cli {
namespace {

absl::StatusOr<Report> RunRepairTerms(const std::string& path) {
  CISTERN_ASSIGN_OR_RETURN(const app::RepairedState repaired, app::RepairStateTerms(path));
  Report report;
  report.json = {
      {"path", repaired.path}, {"removed", repaired.removed}, {"epoch", repaired.newest}};
  report.text = repaired.removed.empty()
                    ? absl::StrCat(repaired.path, ": nothing to repair; the newest term is ",
                                   repaired.newest, "\n")
                    : absl::StrCat(repaired.path, ": removed the claims of terms ",
                                   absl::StrJoin(repaired.removed, ", "), "; the newest term is ",
                                   repaired.newest, " now\n");
  return report;
}

}  // namespace

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
  command.Does([path](Console&) { return RunRepairTerms(*path); });
}

}  // namespace cistern::cli
