// Memory of batches that are no longer needed, for the batches that are read next. Fresh memory
// costs a page fault for every 4 KiB, and together these take longer than decoding samples does.
#pragma once

#include <vector>

#include "absl/synchronization/mutex.h"
#include "worker/data/format/sample_block.h"
#include "worker/data/source/batch.h"

namespace cistern::data {

// Holds at most as many blocks as the largest pass had batches.
//
// Threads: any.
class BlockPool {
 public:
  void Release(std::vector<HostBatch> batches);
  // A block with the memory of a batch that was released, or a new one. Its contents are arbitrary.
  SampleBlock Acquire();

 private:
  absl::Mutex mutex_;
  size_t most_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<SampleBlock> blocks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cistern::data
