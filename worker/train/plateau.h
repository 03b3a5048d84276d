// When to lower the learning rate and when to stop: the rule of the published CTR recipes.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cistern {

// After each epoch the monitored value (higher is better) is compared with the best so far. No
// gain: the learning rate is multiplied by `factor`, and after `patience` such epochs in a row
// training stops.
//
// Threads: one at a time.
class Plateau {
 public:
  struct Rule {
    double factor = 0;     // 0: the learning rate stays
    double min_scale = 0;  // smallest scale() allowed
    double min_gain = 1e-6;
    uint32_t patience = 0;  // 0: never stop
  };
  explicit Plateau(const Rule& rule) : rule_(rule) {}

  // Takes the value of one epoch; true if it is the best so far.
  bool Observe(double value) {
    if (!seen_ || value >= best_ + rule_.min_gain) {
      seen_ = true;
      best_ = value;
      epochs_without_gain_ = 0;
      return true;
    }
    ++epochs_without_gain_;
    if (rule_.factor > 0)
      scale_ = std::max(scale_ * rule_.factor, std::min(scale_, rule_.min_scale));
    return false;
  }

  double scale() const { return scale_; }  // what learning rates are multiplied with; starts at 1
  double best() const { return best_; }
  bool should_stop() const { return rule_.patience > 0 && epochs_without_gain_ >= rule_.patience; }

 private:
  const Rule rule_;
  bool seen_ = false;
  double best_ = 0;
  double scale_ = 1;
  uint32_t epochs_without_gain_ = 0;
};

}  // namespace cistern
