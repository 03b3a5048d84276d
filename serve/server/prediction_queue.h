// The threads that predict, and the bounded queue in front of them.
//
// A request that finds the queue full is refused at once: under overload a short queue answers some
// callers in time, and a long one answers all of them too late.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"

namespace cistern::serve {

// Threads: any thread that is not one of its own.
class PredictionQueue {
 public:
  // max_in_flight: requests that wait or are computed.
  PredictionQueue(int threads, size_t max_in_flight);
  // Waits for everything that was accepted.
  ~PredictionQueue();

  // Runs `work` on one of the threads. kResourceExhausted if max_in_flight requests are in flight,
  // kUnavailable after Drain; `work` is then not called.
  absl::Status Run(std::function<void()> work);

  // Refuses new work and waits, at most for `grace`, until no accepted work is left. May be called
  // more than once. True: none is left.
  bool Drain(absl::Duration grace);

  size_t in_flight() const;
  size_t max_in_flight() const { return max_in_flight_; }
  int thread_num() const { return threads_->thread_num(); }

 private:
  void Leave();

  const size_t max_in_flight_;
  mutable absl::Mutex mutex_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  size_t in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<ThreadPool> threads_;  // destroyed first: its work uses the members above
};

}  // namespace cistern::serve
