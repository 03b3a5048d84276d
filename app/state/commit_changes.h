// The rows that durable commits have changed, read from their files alone.
#pragma once

#include <memory>

#include "server/checkpoint/state_folder.h"
#include "worker/export/committed_model.h"

namespace cistern::app {

// The state of a commit. Scan visits only the rows that changed after commit `since`, in no
// particular order; ScanRemoved visits the keys of rows that were removed since, some of which may
// also have been added since. Pull is not available. PullDense reads whole tables.
//
// If a server has merged its files into a base since then, manifests between the two, which are
// kept for a while, still name the files that were merged.
//
// Null if the files do not tell which rows changed: files were merged or removed, and those
// manifests are gone, too; or a table defers updates, so that a step changes every row. kDataLoss,
// of kind kBadCheckpoint: corrupt files. `state` outlives the result.
absl::StatusOr<std::unique_ptr<CommittedModel>> ReadCommitChanges(
    const server::StateFolder& state, const server::ParsedManifest& commit, uint64_t since);

}  // namespace cistern::app
