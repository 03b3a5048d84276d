// Runs the steps of a job on several threads, with the result of a single thread.
#pragma once

#include <atomic>

#include "absl/synchronization/mutex.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"

namespace cistern::data {

// Calls one(i) for i in [0, n) on the pool's threads, in ascending order. After an error, no
// further calls start. Of several errors, returns the one with the lowest i, as one thread would.
template <typename One>
absl::Status OnThreads(ThreadPool& pool, size_t n, const One& one) {
  absl::Mutex mutex;
  absl::Status failed;
  size_t failed_at = n;
  std::atomic<bool> over = false;
  pool.ParallelFor(n, [&](size_t i) {
    if (over) return;
    const absl::Status status = one(i);
    if (status.ok()) return;
    over = true;
    absl::MutexLock lock(&mutex);
    if (i >= failed_at) return;
    failed_at = i;
    failed = status;
  });
  return failed;
}

}  // namespace cistern::data
