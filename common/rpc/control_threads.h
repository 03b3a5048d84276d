// The threads of a server that run control calls. Each length of call (call_length.h) has some of
// its own, so that a server whose long calls wait for each other still answers a Hello.
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
  // Runs a call, or, if its status is not OK, refuses it with that.
  using Work = std::function<void(const absl::Status&)>;

  ControlThreads();
  // Waits for calls that run.
  ~ControlThreads() { Stop(); }

  // Calls `work` once: on a thread of `length`, or on this one with kUnavailable where too many
  // calls wait already, or the server is stopping.
  void Run(CallLength length, Work work);

  // Refuses the calls that wait, and all that come. May be called again.
  void Stop();

 private:
  struct Lane {
    explicit Lane(int thread_num) : threads(std::make_unique<ThreadPool>(thread_num)) {}

    absl::Mutex mutex;
    bool stopped ABSL_GUARDED_BY(mutex) = false;
    std::deque<Work> waiting ABSL_GUARDED_BY(mutex);
    std::unique_ptr<ThreadPool> threads;  // destroyed first: they take from `waiting`
  };

  static void RunNext(Lane* lane);

  std::array<std::unique_ptr<Lane>, 4> lanes_;  // by CallLength
};

}  // namespace cistern
