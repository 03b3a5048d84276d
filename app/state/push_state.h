// Copies the commits of servers to another place: backups of a fleet, which servers can use as they
// are. Data files first, the manifest last, so a copy holds whole commits.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "app/job_calls.h"
#include "common/base/status.h"

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
// follow: continues with every later commit until calls.stop is set. Also copies what a server has
// prepared and not committed, and tells it (server/checkpoint/copy_record.h). Faults that pass (a
// place that is away, a full disk) are noted and tried again.
//
// One call at a time copies a state: kFailedPrecondition if another does, or if the copy holds
// commits of another training. kInvalidArgument: `state` is none. kBadCheckpoint: its files are
// corrupt; they are not copied.
absl::StatusOr<PushedState> PushState(const PushStateOptions& options, const JobCalls& calls,
                                      const OnPushed& pushed = nullptr);

}  // namespace cistern::app
