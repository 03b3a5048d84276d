// The state of the best epoch (cistern.keep_best), kept on disk while training continues.
//
//   FOLDER/pass-<n>/model/         the committed rows of pass n, as a model folder
//   FOLDER/pass-<n>/position.json  the position of that commit; written last, so that a folder
//                                  without it is incomplete
//
// FOLDER is OUT/best. A new best state is written next to the old one. The old one is removed only
// after a durable commit whose position names the new one (KeepOnly). Hence the state that a
// position names exists for every commit that a run can go back to.
#pragma once

#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/client/parameter_client.h"
#include "worker/train/position.h"

namespace cistern {

// Threads: one at a time.
class BestState {
 public:
  // out_dir: the run's output folder; empty: a temporary folder of this process. files must outlive
  // this object.
  BestState(FileSystem& files, const std::string& out_dir);

  // Saves the committed state together with the position of its commit.
  absl::Status Save(ParameterClient& client, const Position& position);
  // kFailedPrecondition, with the fix, if the state of `pass` does not exist.
  absl::StatusOr<Position> PositionOf(PassId pass) const;
  // Commits the saved state of `pass` again, with `position` and the clock of that commit.
  absl::Status Restore(ParameterClient& client, PassId pass, const Position& position,
                       const v1::StepClock& clock);
  // Replaces `folder` with the model of `pass`; does not touch the servers.
  absl::Status CopyTo(PassId pass, const std::string& folder) const;

  void KeepOnly(PassId pass);
  // After a durable commit whose position names the state that was saved last: removes all others.
  void KeepNewest();
  void RemoveAll();

 private:
  std::string StateOf(PassId pass) const;

  FileSystem& files_;
  const std::string folder_;
  std::optional<PassId> newest_;  // saved; older ones may be there
};

}  // namespace cistern
