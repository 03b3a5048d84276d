// Where a run stands in its data.
#pragma once

#include <cstdint>

namespace cistern {

// The next sample to read.
struct DataPlace {
  uint32_t epoch = 0;   // 0, 1, ...
  uint64_t sample = 0;  // of that epoch's samples: how many come before it
  bool operator==(const DataPlace&) const = default;
};

// Everything that decides which samples the passes from here on hold and in which order, beside the
// options of the PassSource: the place, and what its counters say. (The shuffle has no state: it is
// a function of the seed and these numbers.)
//
// A cursor stands between two passes, or inside one: then it is the one before that pass, with the
// number of its batches, because a pass that is made again has to be cut and shuffled as it was.
struct PassCursor {
  DataPlace next;
  uint64_t batches = 0;  // made before `next`
  uint32_t shuffle_epoch = 0,
           shuffle_place = 0;  // of the next pass's shuffle, while it begins there
  uint64_t pass_batches = 0;   // inside a pass: how many batches it has; 0: between passes
  uint64_t batches_done = 0;   // inside a pass: how many of them are trained
  bool operator==(const PassCursor&) const = default;
};

}  // namespace cistern
