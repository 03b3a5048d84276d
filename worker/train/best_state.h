// The state of the best epoch (cistern.keep_best), kept on disk while training goes on.
//
//   FOLDER/pass-<n>/model/         the committed rows of pass n, as a model folder
//   FOLDER/pass-<n>/position.json  the position of that commit; written last: without it there is
//                                  no state
//
// FOLDER is OUT/best. A new best is written beside the old one, and the old one goes only after a
// durable commit whose position names the new one (KeepOnly): so whatever commit a run goes back
// to, the state that its position names is there.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/client/parameter_client.h"
#include "worker/train/position.h"

namespace cistern {

// Threads: one at a time.
class BestState {
 public:
  // out_dir: of the run; empty: a folder of this process among the temporary ones. files outlives
  // this.
  BestState(FileSystem& files, const std::string& out_dir);

  // Keeps committed state as that of `position`, whose commit it is.
  absl::Status Save(ParameterClient& client, const Position& position);
  // kFailedPrecondition, with the cure, if the state of `pass` is not there.
  absl::StatusOr<Position> PositionOf(PassId pass) const;
  // Makes it the committed state again, with `position` and the clock of that commit.
  absl::Status Restore(ParameterClient& client, PassId pass, const Position& position,
                       const v1::StepClock& clock);
  // Gives `folder` the rows of `pass`, in place of what is there; the servers are not touched.
  absl::Status CopyTo(PassId pass, const std::string& folder) const;

  void KeepOnly(PassId pass);
  void RemoveAll();

 private:
  std::string StateOf(PassId pass) const;

  FileSystem& files_;
  const std::string folder_;
};

}  // namespace cistern
