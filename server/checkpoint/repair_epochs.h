// Frees a state folder of claims that leave no epoch for the next writer.
//
// A claim is a number in a file name, and fencing asks that the next one is greater. A hostile or
// broken writer that claimed 2^64 - 1 (older versions allowed it) would be the last one ever.
#pragma once

#include <string>
#include <vector>

#include "server/checkpoint/state_folder.h"

namespace cistern {

struct RepairedEpochs {
  std::vector<Epoch> removed;  // claims; empty: there was nothing to repair
  Epoch newest = 0;            // the claim that fences from now on
};

// Removes claims from StateFolder::kMaxEpoch on and leaves as the newest one above every other
// epoch that the folder knows. May be repeated after a crash.
//
// kNotFound if `path` is no state folder; kFailedPrecondition if one of its servers runs.
absl::StatusOr<RepairedEpochs> RepairEpochs(FileSystem& files, const std::string& path);

}  // namespace cistern
