#include "server/commit/claim_book.h"

namespace cistern::server {

absl::StatusOr<TermClaim> ClaimBook::Newest() const {
  CISTERN_ASSIGN_OR_RETURN(const Term newest, folder_->NewestTerm());
  absl::StatusOr<TermClaim> claim = folder_->ReadTerm(newest);
  // The number may come from other files, or the claim file may be damaged. Then no writer holds
  // the claim.
  if (!claim.ok()) return ParseClaim(newest, "");
  return claim;
}

absl::Status ClaimBook::Grant(const TermClaim& claim, Term max_step) const {
  CISTERN_ASSIGN_OR_RETURN(const Term newest, folder_->NewestTerm());
  if (claim.term > newest && claim.term - newest > max_step) {
    return absl::FailedPreconditionError(absl::StrCat("term ", claim.term,
                                                      " cannot be claimed: the newest is ", newest,
                                                      ", and the next is ", newest + 1));
  }
  return folder_->CreateTerm(claim);
}

absl::Status ClaimBook::Record(const TermClaim& claim, Term max_step) const {
  const absl::StatusOr<TermClaim> recorded = folder_->ReadTerm(claim.term);
  if (recorded.ok() && recorded->secret == claim.secret) return absl::OkStatus();
  return Grant(claim, max_step);
}

absl::Status ClaimBook::CheckGranted(const TermClaim& claim) const {
  const absl::StatusOr<TermClaim> granted = folder_->ReadTerm(claim.term);
  if (absl::IsNotFound(granted.status())) {
    return WithOptions(
        absl::UnavailableError(absl::StrCat(
            "server 0 has not granted term ", claim.term, " in ", folder_->path(),
            ", or has granted a newer one; all servers of a fleet must share one data_dir")),
        {"cistern-server.data_dir"});
  }
  CISTERN_RETURN_IF_ERROR(granted.status());
  if (granted->secret == claim.secret) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("term ", claim.term, " was granted to another writer: ", granted->writer));
}

}  // namespace cistern::server
