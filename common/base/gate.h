// Counts work in flight so that an owner can stop: after Close() returns, all work has left and no
// new work can enter.
#pragma once

#include "absl/synchronization/mutex.h"

namespace cistern {

// Threads: every method may be called from any thread. Close() blocks.
class Gate {
 public:
  // Returns false once Close() has begun. After true, the caller must call Leave().
  [[nodiscard]] bool Enter() {
    absl::MutexLock lock(&mutex_);
    if (closed_) return false;
    ++inside_;
    return true;
  }
  void Leave() {
    absl::MutexLock lock(&mutex_);
    --inside_;
  }
  // Blocks until everything that entered has left. May be called more than once.
  void Close() {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    mutex_.Await(absl::Condition(
        +[](int* inside) { return *inside == 0; }, &inside_));
  }

 private:
  absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  int inside_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace cistern
