// Makes a state of a copy: restores a server's lost disk, and moves a fleet to new machines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/job_calls.h"
#include "common/base/status.h"
#include "common/base/types.h"

namespace cistern::app {

struct PullStateOptions {
  std::string from;  // a copy, or the data_dir of servers that are stopped
  std::string to;    // a data_dir whose state no server uses
  std::optional<uint64_t> server =
      {};                   // local states: the rank to which the folder belongs; else all
  uint64_t server_num = 0;  // of the fleet that will use it; 0: as the commit's
  uint64_t commit = 0;      // 0: the newest
  // A manifest that is newer than the copy's: a file, or another server's data_dir. Empty: one of
  // the copy.
  std::string manifest = {};
  bool replace = false;  // moves a state that has commits aside
};

struct PulledState {
  uint64_t commit = 0;
  PassId pass = 0;
  uint64_t files = 0, bytes = 0;
  std::string moved;  // where the state that was there is now; empty: there was none
};

// Makes the state folder of `to` that of a commit: copies its files, verifies each, and gives the
// folder its name once it is complete. An interrupted call is simply repeated. The next term is
// above all that the old folder knew.
//
// kAlreadyExists, with a fix: the state has commits and replace is not set. kFailedPrecondition: a
// server uses it. kDataLoss: the copy lacks a file, or one is corrupt. kInvalidArgument: no commit,
// or a server that the fleet does not have.
absl::StatusOr<PulledState> PullState(const PullStateOptions& options, const JobCalls& calls);

}  // namespace cistern::app
