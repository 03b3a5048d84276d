// Loads a saved model onto a fleet with any number of servers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/fleet/precondition.h"
#include "app/job_calls.h"
#include "app/model/model_source.h"
#include "common/base/status.h"
#include "common/base/types.h"
#include "proto/control_plane.pb.h"

namespace cistern::app {

struct LoadFleetOptions {
  FleetOptions fleet;
  // Exactly one of these three:
  std::string name;                          // a folder below each server's data_dir
  std::string model_dir;                     // a model folder on this machine, of `model`
  std::vector<std::string> increments = {};  // folders on this machine, the oldest first
  // With model_dir: its model file. With a name: the model file whose tables are created if the
  // servers have none and the files define none, or other ones; empty: none.
  ModelOptions model;
  bool replace = false;                   // first removes what the servers hold
  bool upgrade = false, foreign = false;  // as in v1::LoadRequest
  std::vector<std::string> tables = {};   // as in v1::LoadRequest
  Precondition expected;                  // checked before anything changes
};

struct LoadedFleet {
  bool already_there = false;  // the servers held exactly these rows, and nothing was done
  PassId pass = 0;             // that they hold, if already_there
  uint64_t rows = 0;
  size_t increments = 0;  // that were applied
  std::vector<v1::TableLeftOut> left_out;
};

// All servers read their shards; increments are committed as a pass each. After a failed load,
// durable servers return to their last commit and others are empty. Claims the fleet's term, if
// there is something to do.
//
// kInvalidArgument, with a fix: the servers hold other rows and `replace` is not set; no such name.
// kFailedPrecondition, with a fix: other tables, or an expectation that does not hold. Kind
// kBadCheckpoint: corrupt files.
absl::StatusOr<LoadedFleet> LoadFleet(const LoadFleetOptions& options, const JobCalls& calls);

}  // namespace cistern::app
