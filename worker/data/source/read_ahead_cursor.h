// Reads the next batches of another cursor on a thread of its own, while their predecessors are
// added to a pass.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "absl/synchronization/mutex.h"
#include "common/base/thread_pool.h"
#include "worker/data/source/batch_cursor.h"
#include "worker/data/source/block_pool.h"

namespace cistern::data {

// Returns the batches, places and errors of `from` in their order.
//
// Threads: one at a time. The destructor waits for the batch that is being read.
class ReadAheadCursor : public BatchCursor {
 public:
  // blocks: whose memory the batches take; may be null.
  ReadAheadCursor(std::unique_ptr<BatchCursor> from, std::shared_ptr<BlockPool> blocks);
  ~ReadAheadCursor() override;

  absl::StatusOr<bool> Next(BatchSamples* out) override;
  DataPlace place() const override { return at_.place; }
  std::string slice() const override { return at_.slice; }
  bool at_end() const override { return at_.at_end; }

 private:
  static constexpr size_t kAhead = 2;

  // Where the cursor stands behind a batch.
  struct Place {
    DataPlace place;
    std::string slice;
    bool at_end = false;
  };
  struct Ahead {
    absl::StatusOr<bool> got = false;
    BatchSamples samples;
    Place behind;
  };
  Place PlaceOfFrom() const { return {from_->place(), from_->slice(), from_->at_end()}; }
  void Run();

  const std::unique_ptr<BatchCursor> from_;  // used by the thread
  const std::shared_ptr<BlockPool> blocks_;
  Place at_;

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // the thread has read the last batch or an error
  std::deque<Ahead> ahead_ ABSL_GUARDED_BY(mutex_);
  ThreadPool thread_{1};  // last: its destructor waits for Run
};

}  // namespace cistern::data
