// Checks the --out folder of a training run before the run starts: what an earlier run left there,
// and whether this run may continue or replace it.
//
//   OUT/metrics.jsonl, OUT/model/, OUT/snapshot-<iteration>/, OUT/best/   written by the run
//   OUT/state/   commits of embedded servers (--durability commit)
#pragma once

#include <string>

#include "common/base/status.h"

namespace cistern {

struct RunFolder {
  std::string out;
  bool embedded = true;    // the servers run in this process
  bool keep_state = true;  // --durability commit
  bool resume = false, overwrite = false;

  // Embedded servers keep their state in state_root()/state; empty: they keep none.
  std::string state_root() const { return embedded && keep_state ? out : ""; }
};

// Checks that the flags agree with each other and with the contents of the folder. Removes the
// state in the folder if `overwrite` is set or if nothing was ever committed to it.
//
// kInvalidArgument, with a fix: the flags conflict, or do not say what to do with an earlier run.
// kFailedPrecondition: another process uses the state.
absl::Status PrepareRunFolder(const RunFolder& run);

}  // namespace cistern
