// Saves the committed state of a fleet.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/fleet/fleet_session.h"
#include "app/job_calls.h"
#include "common/base/status.h"
#include "common/base/types.h"
#include "common/io/file_system.h"
#include "proto/control_plane.pb.h"

namespace cistern::app {

struct SaveFleetOptions {
  FleetOptions fleet;
  std::string name;  // a new folder below each server's data_dir
  v1::SaveMode mode = v1::ALL;
  v1::SaveFormat format = {};
  uint64_t day = 0;  // today's day number, for tables whose rows record days
};

// The files of one server.
struct SavedPart {
  std::string server, path;
  uint64_t rows = 0, bytes = 0, files = 0;
};

struct SavedFleet {
  PassId pass = 0;
  std::vector<SavedPart> parts;  // by rank
  uint64_t rows() const;
  uint64_t bytes() const;
};

// All servers write their shards under their data_dir, in parallel. While a training commits, they
// save again until all have saved one pass. If the mode requires it, the statistics of the saved
// rows are reset once every server's files are on disk, and the reset is committed: this claims the
// fleet's term.
//
// kAlreadyExists: the name is taken. kAborted, with a fix: a training commits faster than the
// servers save. kResourceExhausted: a disk is full. The state of the servers is unchanged after an
// error.
absl::StatusOr<SavedFleet> SaveFleet(const SaveFleetOptions& options, const JobCalls& calls);

// Copies all rows over the network to `folder`, a new one of this machine. Claims the fleet's term,
// so that no other writer commits between two reads. Errors as above.
absl::StatusOr<SavedPart> SaveFleetHere(const FleetOptions& fleet, const std::string& folder,
                                        PassId* pass);

// The newest durable commit of a fleet.
struct FleetCommit {
  std::unique_ptr<FleetSession> fleet;
  std::unique_ptr<FileSystem> files;  // hold the state
  std::string state;                  // STATE or STATE@COMMIT
};

// Its files are those of this machine where it sees the servers' data_dir; else they are read
// through the servers. kFailedPrecondition, with a fix: the servers keep no commits.
absl::StatusOr<FleetCommit> CommitOfFleet(const FleetOptions& options);

}  // namespace cistern::app
