// The start point of a trainer.
#pragma once

#include "worker/train/position.h"

namespace cistern {

// A position that matches the servers' committed state.
struct TrainStart {
  Position position;
  bool after_commit = false;    // true: `position` is that of a commit; false: the start of the run
  bool write_pass_line = true;  // after_commit: metrics.jsonl lacks the commit's line
  // after_commit: the run has ended and its limits forbid more training; only its final work
  // remains.
  bool is_over = false;
  bool is_more = false;  // other data follows a finished run (JobOptions.more)
};

}  // namespace cistern
