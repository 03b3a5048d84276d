#include "common/value/learning_rate.h"

#include <algorithm>
#include <cmath>

namespace cistern {

// Warm-up takes precedence over decay.
double LearningRateSchedule::At(uint64_t step) const {
  const double n = static_cast<double>(step);
  if (step <= warmup_steps) return n * base / static_cast<double>(warmup_steps);
  if (decay_start == 0 || step <= decay_start) return base;
  const uint64_t decayed = step - decay_start;
  if (decayed > decay_steps) return end;
  const double left = static_cast<double>(decay_steps - decayed) / static_cast<double>(decay_steps);
  return std::max(end, base * std::pow(left, decay_power));
}

}  // namespace cistern
