// Iterates over a data set batch by batch, for any number of epochs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "worker/data/format/sample_block.h"
#include "worker/data/source/pass_cursor.h"

namespace cistern::data {

// The samples of one batch that this worker takes.
struct BatchSamples {
  SampleBlock block;
  size_t all = 0;           // samples of the batch over all workers
  size_t first = 0;         // how many of them come before those of this worker
  uint32_t epoch = 0;       // epoch of the batch's first sample
  bool ends_epoch = false;  // the batch holds the last sample of an epoch
};

// Threads: one at a time.
class BatchCursor {
 public:
  virtual ~BatchCursor() = default;
  // Fills `out` with the next batch; false at the end. kDataLoss if an epoch has no samples or ends
  // before the start.
  virtual absl::StatusOr<bool> Next(BatchSamples* out) = 0;
  // Where the next batch begins.
  virtual DataPlace place() const = 0;
  // DataPlace::slice of the epoch that was opened last.
  virtual std::string slice() const { return ""; }
  virtual bool at_end() const = 0;
};

}  // namespace cistern::data
