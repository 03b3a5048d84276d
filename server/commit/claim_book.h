// The claims of a cluster's writers, on disk: which epoch was granted last, and to whom.
#pragma once

#include "server/checkpoint/state_folder.h"

namespace cistern {

// Threads: any thread; two processes exclude each other by names that are given once.
class ClaimBook {
 public:
  explicit ClaimBook(StateFolder* folder) : folder_(folder) {}

  // The newest claim; epoch 0 if there is none.
  absl::StatusOr<EpochClaim> Newest() const;
  // Of server 0: gives the epoch to the claim, once. kAlreadyExists if it or a newer one was given
  // before; kFailedPrecondition if it is not the next one.
  absl::Status Grant(const EpochClaim& claim) const;
  // Of the others: whether server 0 has granted the claim to the holder of its secret. kUnavailable
  // if it is not there yet; kFailedPrecondition if it is somebody else's.
  absl::Status CheckGranted(const EpochClaim& claim) const;

 private:
  StateFolder* const folder_;
};

}  // namespace cistern
