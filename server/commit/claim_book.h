// The claims of a cluster's writers on disk: which term was granted last, and to which writer.
#pragma once

#include "server/checkpoint/state_folder.h"

namespace cistern {

// Threads: any thread. Two processes exclude each other by exclusive names.
class ClaimBook {
 public:
  explicit ClaimBook(StateFolder* folder) : folder_(folder) {}

  // The newest claim; its epoch is 0 if there is no claim.
  absl::StatusOr<TermClaim> Newest() const;
  // For server 0: grants the term to the claim, once. kAlreadyExists if this term or a newer one
  // was granted before; kFailedPrecondition if the term is not the next one.
  absl::Status Grant(const TermClaim& claim) const;
  // For the other servers: OK if server 0 has granted the claim to the holder of its secret.
  // kUnavailable if the grant is not visible yet; kFailedPrecondition if another writer holds it.
  absl::Status CheckGranted(const TermClaim& claim) const;

 private:
  StateFolder* const folder_;
};

}  // namespace cistern
