// Removes from a state folder the claims that leave no term for the next writer.
//
// A claim is a number in a file name, and fencing requires the next number to be greater. Without
// the repair, a hostile or broken writer that claimed 2^64 - 1 (older versions allowed it) would be
// the last writer of the folder.
#pragma once

#include <string>
#include <vector>

#include "server/checkpoint/state_folder.h"

namespace cistern::server {

struct RepairedTerms {
  std::vector<Term> removed;  // claims; empty: nothing needed repair
  Term newest = 0;            // the claim that fences from now on
};

// Removes claims at or above StateFolder::kMaxTerm, and makes the newest claim one above every
// other term in the folder. May be repeated after a crash.
//
// kNotFound if `path` is not a state folder; kFailedPrecondition if one of its servers is running.
absl::StatusOr<RepairedTerms> RepairTerms(FileSystem& files, const std::string& path);

}  // namespace cistern::server
