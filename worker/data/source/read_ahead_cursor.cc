#include "worker/data/source/read_ahead_cursor.h"

#include <utility>

namespace cistern::data {

ReadAheadCursor::ReadAheadCursor(std::unique_ptr<BatchCursor> from,
                                 std::shared_ptr<BlockPool> blocks)
    : from_(std::move(from)), blocks_(std::move(blocks)), at_(PlaceOfFrom()) {
  thread_.Run([this] { Run(); });
}

ReadAheadCursor::~ReadAheadCursor() {
  absl::MutexLock lock(&mutex_);
  stopping_ = true;
}

absl::StatusOr<bool> ReadAheadCursor::Next(BatchSamples* out) {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(
      +[](ReadAheadCursor* self)
           ABSL_NO_THREAD_SAFETY_ANALYSIS { return !self->ahead_.empty() || self->ended_; },
      this));
  if (ahead_.empty()) return false;
  Ahead next = std::move(ahead_.front());
  ahead_.pop_front();
  at_ = std::move(next.behind);
  *out = std::move(next.samples);
  return std::move(next.got);
}

void ReadAheadCursor::Run() {
  while (true) {
    Ahead next;
    if (blocks_ != nullptr) next.samples.block = blocks_->Acquire();
    next.got = from_->Next(&next.samples);
    next.behind = PlaceOfFrom();
    const bool last = !next.got.ok() || !*next.got;
    absl::MutexLock lock(&mutex_);
    ahead_.push_back(std::move(next));
    ended_ = last;
    mutex_.Await(absl::Condition(
        +[](ReadAheadCursor* self) ABSL_NO_THREAD_SAFETY_ANALYSIS {
          return self->stopping_ || self->ahead_.size() < kAhead;
        },
        this));
    if (last || stopping_) return;
  }
}

}  // namespace cistern::data
