// Repairs a state on disk that no writer can claim any more.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace cistern::app {

struct RepairedState {
  std::string path;               // of the state folder
  std::vector<uint64_t> removed;  // terms whose claims are gone; empty: there was nothing to repair
  uint64_t newest = 0;            // the term that is claimed now
};

// Removes claims of terms so high that no later writer can claim
// (server/checkpoint/repair_terms.h). state: a data_dir of stopped servers, or the state folder in
// it.
//
// kInvalidArgument, with a fix: it is neither. kFailedPrecondition, with a fix: a server uses it.
// kBadCheckpoint: it cannot be repaired.
absl::StatusOr<RepairedState> RepairStateTerms(const std::string& state);

}  // namespace cistern::app
