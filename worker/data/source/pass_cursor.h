// The position of a run in its data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cistern::data {

// The next sample to read.
struct DataPlace {
  uint32_t epoch = 0;   // 0, 1, ...
  uint64_t sample = 0;  // number of samples before it in the epoch
  // The same for each stream, if the data is read in several (stream_cursor.h). Empty: in the order
  // of the files, or at the start of an epoch.
  std::vector<uint64_t> streams;
  // Of data that never ends: where the epoch begins in its source and, once its samples are known,
  // which ones they are (epoch_source.h). Else empty.
  std::string slice;
  bool operator==(const DataPlace&) const = default;
};

// The place and the counters that, together with the options of the PassSource, determine the
// samples of all later passes and their order. The shuffle has no state: it is a function of the
// seed and these numbers.
//
// A cursor is between two passes or inside one. Inside a pass, it is the cursor before that pass
// plus the number of its batches, because a rebuilt pass must be cut and shuffled as before.
struct PassCursor {
  DataPlace next;
  uint64_t batches = 0;  // number of batches made before `next`
  uint32_t shuffle_epoch = 0,
           shuffle_place = 0;  // passes shuffled so far that begin in shuffle_epoch
  uint64_t pass_batches = 0;   // inside a pass: the number of its batches; 0: between passes
  uint64_t batches_done = 0;   // inside a pass: the number of trained batches
  bool operator==(const PassCursor&) const = default;
};

}  // namespace cistern::data
