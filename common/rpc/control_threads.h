// The threads that run a server's control calls. Each length of call (call_length.h) has its own
// threads, so that a server still answers Hello while its long calls wait for each other.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>

#include "absl/synchronization/mutex.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "common/wire/call_length.h"

namespace cistern {

// Threads: any thread.
class ControlThreads {
 public:
  // Runs a call if the status is OK; otherwise refuses it with that status.
  using Work = std::function<void(const absl::Status&)>;

  ControlThreads();
  // Waits for running calls.
  ~ControlThreads() { Stop(); }

  // Calls `work` exactly once: on a thread for `length`, or on the current thread with kUnavailable
  // if too many calls are already waiting or the server is stopping.
  void Run(CallLength length, Work work);

  // Refuses waiting calls and all later ones. May be called more than once.
  void Stop();

 private:
  struct Lane {
    explicit Lane(int thread_num) : threads(std::make_unique<ThreadPool>(thread_num)) {}

    absl::Mutex mutex;
    bool stopped ABSL_GUARDED_BY(mutex) = false;
    std::deque<Work> waiting ABSL_GUARDED_BY(mutex);
    std::unique_ptr<ThreadPool> threads;  // destroyed first: the threads use `waiting`
  };

  static void RunNext(Lane* lane);

  std::array<std::unique_ptr<Lane>, 4> lanes_;  // by CallLength
};

}  // namespace cistern
