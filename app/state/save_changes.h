// Saves what a model has changed since an earlier state, as an increment.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/job_calls.h"
#include "common/base/status.h"
#include "common/io/file_system.h"
#include "common/saved_model/increment.h"
#include "proto/checkpoint.pb.h"
#include "proto/control_plane.pb.h"

namespace cistern::app {

struct SaveChangesOptions {
  std::string state;  // STATE, STATE@COMMIT, or the folder of a saved model: the new state
  // The earlier state: the number of a commit of the same state; or folders: a saved model and
  // increments of it, in order, or an increment alone.
  std::vector<std::string> since;
  std::string out;  // a new folder
  v1::SaveFormat format;
  FileSystem* files = nullptr;  // holds the places above; null: those of this machine
};

struct SavedChanges {
  v1::Increment increment;  // as increment.json records it
  uint64_t rows = 0, removed = 0, bytes = 0;
  bool compared = false;  // all rows of both states were read and compared
};

// Reads row files alone; servers and trainings go on. The row files of commits tell what has
// changed as long as they exist (app/state/commit_changes.h). If they do not, both states are
// compared, if both can be read; memory then holds one shard of the earlier one.
//
// kInvalidArgument, with a fix: a place is no state, the states have other tables or another
// shard_num, the earlier state belongs to another training, or a format that would lose bits.
// kFailedPrecondition, with a fix: what has changed is not known any more. kAlreadyExists: `out`
// holds something. kUnimplemented: a rule defers updates, so that a step changes every row.
// kBadCheckpoint: corrupt files. kAborted, with a fix: a training removed the commit meanwhile.
// kCancelled: calls.stop was set. An error removes `out`.
absl::StatusOr<SavedChanges> SaveChanges(const SaveChangesOptions& options, const JobCalls& calls);

nlohmann::ordered_json JsonOf(const SavedChanges& saved);

}  // namespace cistern::app
