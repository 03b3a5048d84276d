// Copies the commits of servers to another place and back: backups of a fleet, and new machines for
// it. Data files first, the manifest last, so a copy holds whole commits.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "app/job_calls.h"
#include "common/base/status.h"
#include "common/base/types.h"

namespace cistern::app {

struct PushStateOptions {
  std::string state;  // the data_dir of a server, running or not, or its state folder
  std::string to;     // a folder, or below s3://, gs://, hdfs://: the data_dir of the copy
  uint64_t keep = 3;  // newest commits that stay in the copy
  bool follow = false;
  uint64_t poll_ms = 20;  // follow: between two looks for a new commit
};

struct PushedState {
  uint64_t commit = 0;            // the newest of the state; 0: none
  uint64_t whole_commit = 0;      // the newest that the copy has whole, of all servers; 0: none
  uint64_t files = 0, bytes = 0;  // copied by this call, without manifests
};

// Called after each commit whose files have been copied, with what was done so far.
using OnPushed = std::function<void(const PushedState& pushed)>;

// Copies the newest commit: the row files that this state has, then the manifest, once the copy has
// the files of all servers. With local states, each server's own is pushed to the same copy; whose
// files come last writes the manifest. Every file is verified before it is copied. Old files of
// this state are removed from the copy, and old manifests.
//
// follow: goes on with every later commit until calls.stop is set. Also copies what a server has
// prepared and not committed, and tells it (server/checkpoint/copy_record.h). Faults that pass (a
// place that is away, a full disk) are noted and tried again.
//
// One call at a time copies a state: kFailedPrecondition if another does, or if the copy holds
// commits of another training. kInvalidArgument: `state` is none. kBadCheckpoint: its files are
// corrupt; they are not copied.
absl::StatusOr<PushedState> PushState(const PushStateOptions& options, const JobCalls& calls,
                                      const OnPushed& pushed = nullptr);

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

struct AdoptManifestOptions {
  std::string from;     // a manifest, or the data_dir of the server that has it
  std::string to;       // the data_dir of the server that lacks it, stopped
  uint64_t server = 0;  // its rank
};

// Gives a server the newest manifest of another one: for server 0, whose folder was restored
// without its last manifests. Its own row files must be there. The next term is above the
// manifest's.
//
// kDataLoss names the files that are missing. kFailedPrecondition: a server uses the folder, which
// may also be newer. Repeating it changes nothing.
absl::StatusOr<PulledState> AdoptManifest(const AdoptManifestOptions& options);

}  // namespace cistern::app
