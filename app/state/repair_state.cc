#include "app/state/repair_state.h"

#include <memory>

#include "app/state/saved_place.h"
#include "server/checkpoint/repair_terms.h"

namespace cistern::app {

absl::StatusOr<RepairedState> RepairStateTerms(const std::string& state) {
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<server::StateFolder> folder,
                           FindGivenState(files, state));
  const absl::StatusOr<server::RepairedTerms> repaired = server::RepairTerms(files, folder->path());
  if (absl::IsFailedPrecondition(repaired.status())) {
    return WithFix(repaired.status(), "stop every server that uses this state, then repeat this");
  }
  if (!repaired.ok()) return WithKind(repaired.status(), ErrorKind::kBadCheckpoint);
  return RepairedState{folder->path(), repaired->removed, repaired->newest};
}

}  // namespace cistern::app
