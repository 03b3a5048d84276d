// The learning rate of a step.
#pragma once

#include <cstdint>

namespace cistern {

// Warm-up, constant, polynomial decay: HugeCTR v2.3 include/learning_rate_scheduler.hpp.
struct LearningRateSchedule {
  double base = 0.001;
  uint64_t warmup_steps = 1;
  uint64_t decay_start = 0;  // 0: no decay
  uint64_t decay_steps = 1;
  double decay_power = 2;
  double end = 0;
  // step: 1, 2, ...
  double At(uint64_t step) const;

  bool operator==(const LearningRateSchedule&) const = default;
};

}  // namespace cistern
