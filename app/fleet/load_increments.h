// Brings the rows of a fleet up to date with increments (common/saved_model/increment.h).
#pragma once

#include <string>
#include <vector>

#include "app/job_calls.h"
#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/client/parameter_client.h"

namespace cistern::app {

struct LoadedIncrements {
  size_t applied = 0;  // increments; those that the servers had are left out
  uint64_t rows = 0;   // that they changed or removed
};

// Commits each increment that the servers do not have yet as one pass, over all servers, tables and
// dense parameters: all of it or nothing. Claims a term if there is something to do. The servers
// may be any number, and must hold the rows that the chain of increments begins with, or continues.
// Afterwards they are at the pass of the last increment, or at a later one, and bounds of tables
// remove what they would have removed there.
//
// kInvalidArgument, with a fix: a folder is no increment, or they do not continue each other.
// kFailedPrecondition, with a fix: the servers hold other rows or tables. kBadCheckpoint: corrupt
// files. kCancelled: calls.stop was set.
// After an error the servers are at the last increment that was committed.
absl::StatusOr<LoadedIncrements> LoadIncrements(FileSystem& files, ParameterClient& client,
                                                const std::vector<std::string>& folders,
                                                const JobCalls& calls);

}  // namespace cistern::app
