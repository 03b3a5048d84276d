// Steps of one job on several threads, which end as one thread would have ended them.
#pragma once

#include <atomic>

#include "absl/synchronization/mutex.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"

namespace cistern {

// Calls one(i) for i in [0, n) on the pool's threads, lower numbers first. After an error no more
// are begun; of several the one with the lowest number is returned, as one thread would.
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

}  // namespace cistern
