// Pieces that several threads make in parallel and that are consumed one at a time, in order, as a
// file requires.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"

namespace cistern::server {

// A thread that has made a piece also takes all pieces whose turn has come, while other threads
// make the next ones. A thread waits only if its piece would be more than `window` ahead of the
// first piece not taken.
//
// Threads: call Run once, from a thread outside the pool.
template <typename Piece>
class InOrder {
 public:
  using Make = std::function<Piece(size_t i)>;
  using Take = std::function<absl::Status(size_t i, Piece piece)>;

  // window: the most pieces held at a time, at least 1.
  InOrder(size_t window, Make make, Take take)
      : make_(std::move(make)), take_(std::move(take)), made_(std::max<size_t>(window, 1)) {}

  // Makes and takes pieces 0 .. n-1. The first error of `take` ends the run; exceptions propagate.
  absl::Status Run(size_t n, ThreadPool& pool) {
    pool.ParallelFor(n, [&](size_t i) {
      try {
        RunOne(i);
      } catch (...) {
        absl::MutexLock lock(&mutex_);
        stopped_ = true;  // otherwise threads would wait for a piece that never comes
        throw;
      }
    });
    absl::MutexLock lock(&mutex_);
    return status_;
  }

 private:
  void RunOne(size_t i) {
    const auto has_room = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return stopped_ || i < taken_ + made_.size();
    };
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&has_room));
      if (stopped_) return;
    }
    Piece piece = make_(i);
    absl::MutexLock lock(&mutex_);
    made_[i % made_.size()] = std::move(piece);
    if (taking_) return;  // the taking thread checks again
    taking_ = true;
    while (!stopped_ && made_[taken_ % made_.size()].has_value()) TakeNext();
    taking_ = false;
  }

  // Releases the lock during take_.
  void TakeNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Piece next = *std::exchange(made_[taken_ % made_.size()], std::nullopt);
    const size_t i = taken_;
    mutex_.Unlock();
    absl::Status status;
    try {
      status = take_(i, std::move(next));
    } catch (...) {
      mutex_.Lock();
      throw;
    }
    mutex_.Lock();
    ++taken_;
    if (status.ok()) return;
    status_ = std::move(status);
    stopped_ = true;
  }

  const Make make_;
  const Take take_;
  absl::Mutex mutex_;
  std::vector<std::optional<Piece>> made_ ABSL_GUARDED_BY(mutex_);  // piece i at i % size
  size_t taken_ ABSL_GUARDED_BY(mutex_) = 0;  // pieces 0 .. taken_ - 1 are taken
  bool taking_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cistern::server
