// The --out folder of a training: what an earlier run left there, and what may happen to it.
//
//   OUT/metrics.jsonl, OUT/model/, OUT/snapshot-<iteration>/, OUT/best/ while training goes on
//   OUT/state/   of embedded servers that keep their commits (--durability commit)
#pragma once

#include <string>

#include "common/base/status.h"

namespace cistern {

struct RunFolder {
  std::string out;
  bool embedded = true;    // the servers live in this process
  bool keep_state = true;  // --durability commit
  bool resume = false, overwrite = false;

  // Where embedded servers keep their state is `state_root`/state; empty: they keep none.
  std::string state_root() const { return embedded && keep_state ? out : ""; }
};

// Checks that the flags go together and with what the folder holds; with `overwrite`, removes the
// state that it holds, as it does with one that nothing was committed to. kInvalidArgument, with
// the ways out, where there is something that the flags do not say what to do with;
// kFailedPrecondition where another process uses the state.
absl::Status PrepareRunFolder(const RunFolder& run);

}  // namespace cistern
