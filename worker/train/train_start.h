// Where a trainer begins.
#pragma once

#include "worker/train/position.h"

namespace cistern {

// The servers' committed state is that of `position`.
struct TrainStart {
  Position position;
  bool after_commit = false;    // `position` is that of a commit; else of the beginning
  bool write_pass_line = true;  // after_commit: metrics.jsonl does not hold the commit's line yet
  // after_commit: the run was over, and nothing allows it to go on; it only has to end properly.
  bool is_over = false;
};

}  // namespace cistern
