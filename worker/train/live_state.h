// Where a training is at this moment, for a display that does not wait for the next event.
#pragma once

#include <atomic>
#include <cstdint>

#include "worker/train/phase_clock.h"

namespace cistern {

// Threads: the training thread writes, any thread reads; the fields are independent of each other.
struct LiveState {
  std::atomic<uint64_t> iterations{0}, samples{0};  // since the start of the run
  std::atomic<double> loss{0};                      // of the last step
  std::atomic<Phase> phase{Phase::kRead};
  // Set before the first step of this process, which may continue the run of an earlier process.
  std::atomic<bool> began{false};

  void Step(uint64_t iterations_now, uint64_t samples_now, double loss_now) {
    iterations.store(iterations_now, std::memory_order_relaxed);
    samples.store(samples_now, std::memory_order_relaxed);
    loss.store(loss_now, std::memory_order_relaxed);
    began.store(true, std::memory_order_relaxed);
  }
};

}  // namespace cistern
