// The claims of a cluster's writers on disk: which term was granted last, and to which writer.
#pragma once

#include "server/checkpoint/state_folder.h"

namespace cistern::server {

// Threads: any thread. Two processes exclude each other by exclusive names.
class ClaimBook {
 public:
  explicit ClaimBook(StateFolder* folder) : folder_(folder) {}

  // The newest claim; its term is 0 if there is no claim.
  absl::StatusOr<TermClaim> Newest() const;
  // For server 0: grants the term to the claim, once. kAlreadyExists if this term or a newer one
  // was granted before; kFailedPrecondition if it is more than max_step above the newest.
  absl::Status Grant(const TermClaim& claim, Term max_step = 1) const;
  // For the other servers of a local state: records a claim that server 0 has granted. OK if it is
  // recorded; else as Grant.
  absl::Status Record(const TermClaim& claim, Term max_step) const;
  // For the other servers: OK if server 0 has granted the claim to the holder of its secret.
  // kUnavailable if the grant is not visible yet; kFailedPrecondition if another writer holds it.
  absl::Status CheckGranted(const TermClaim& claim) const;

 private:
  StateFolder* const folder_;
};

}  // namespace cistern::server
