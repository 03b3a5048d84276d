// Where a training is at this moment, for a display that does not wait for the next event.
#pragma once

#include <atomic>
#include <cstdint>

#include "worker/train/phase_clock.h"

namespace cistern {

// Threads: the training thread writes, any thread reads; the fields are independent of each other.
struct LiveState {
  std::atomic<uint64_t> iterations{0}, samples{0};  // since the start of the run
  // Of this process, with those that are trained again after a loss.
  std::atomic<uint64_t> trained_steps{0}, trained_samples{0};
  std::atomic<double> loss{0};  // of the last step
  std::atomic<Phase> phase{Phase::kRead};
  // The commit of the last pass has not ended, and the training waits for it, in any phase.
  std::atomic<bool> awaits_commit{false};
  // Set before the first step of this process, which may continue the run of an earlier process.
  std::atomic<bool> began{false};

  // A step over `step_samples` samples has ended.
  void Step(uint64_t iterations_now, uint64_t samples_now, uint64_t step_samples, double loss_now) {
    trained_steps.fetch_add(1, std::memory_order_relaxed);
    trained_samples.fetch_add(step_samples, std::memory_order_relaxed);
    iterations.store(iterations_now, std::memory_order_relaxed);
    samples.store(samples_now, std::memory_order_relaxed);
    loss.store(loss_now, std::memory_order_relaxed);
    began.store(true, std::memory_order_relaxed);
  }
};

}  // namespace cistern
