// The rows that durable commits have changed, read from their files alone.
#pragma once

#include <memory>

#include "server/checkpoint/state_folder.h"
#include "worker/export/committed_model.h"

namespace cistern {

// The state of a commit. Scan visits only the rows that changed after commit `since`, in no
// particular order, and Pull is not available. PullDense reads whole tables.
//
// Null if the files do not tell which rows changed: some were merged or removed meanwhile, or a
// table defers updates, so that a step changes every row. kDataLoss, marked FromCheckpoint: corrupt
// files. `state` outlives the result.
absl::StatusOr<std::unique_ptr<CommittedModel>> ReadCommitChanges(const StateFolder& state,
                                                                  const ParsedManifest& commit,
                                                                  uint64_t since);

}  // namespace cistern
