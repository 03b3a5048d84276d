// A fixed set of threads that run functions. All threads of Cistern start here.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"

namespace cistern {

// Threads: Run and ParallelFor may be called from any thread that is not one of the pool's own.
class ThreadPool {
 public:
  explicit ThreadPool(int thread_num);  // starts at least one thread
  ~ThreadPool();                        // runs everything queued, then joins
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int thread_num() const { return static_cast<int>(threads_.size()); }
  void Run(std::function<void()> work);
  // Calls body(i) for every i in [0, n), spread over the threads; returns when all calls are done.
  // Rethrows the first exception of a body (only std::bad_alloc: our own code does not throw) and
  // skips the remaining calls.
  void ParallelFor(size_t n, const std::function<void(size_t)>& body);

 private:
  void Work();
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stopping_ || !queue_.empty(); }

  absl::Mutex mutex_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;  // constant after construction
};

}  // namespace cistern
