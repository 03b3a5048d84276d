// The rule of the published CTR recipes for lowering the learning rate and for early stopping.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cistern {

// After each epoch, Observe compares the monitored value (higher is better) with the best so far.
// Without a gain, the learning rate is multiplied by `factor`; after `patience` consecutive epochs
// without a gain, training stops.
//
// Threads: one at a time.
class Plateau {
 public:
  struct Rule {
    double factor = 0;     // 0: keep the learning rate
    double min_scale = 0;  // smallest scale() allowed
    double min_gain = 1e-6;
    uint32_t patience = 0;  // 0: never stop
  };
  // The history so far; a default State has no history.
  struct State {
    bool seen = false;
    double best = 0;
    double scale = 1;
    uint32_t epochs_without_gain = 0;
    bool operator==(const State&) const = default;
  };
  explicit Plateau(const Rule& rule) : rule_(rule) {}
  Plateau(const Rule& rule, const State& state) : rule_(rule), state_(state) {}

  // Records the value of one epoch; true if it is the best so far.
  bool Observe(double value) {
    if (!state_.seen || value >= state_.best + rule_.min_gain) {
      state_.seen = true;
      state_.best = value;
      state_.epochs_without_gain = 0;
      return true;
    }
    ++state_.epochs_without_gain;
    if (rule_.factor > 0) {
      state_.scale = std::max(state_.scale * rule_.factor, std::min(state_.scale, rule_.min_scale));
    }
    return false;
  }

  // The factor for all learning rates; starts at 1.
  double scale() const { return state_.scale; }
  double best() const { return state_.best; }
  const State& state() const { return state_; }
  bool should_stop() const {
    return rule_.patience > 0 && state_.epochs_without_gain >= rule_.patience;
  }

 private:
  const Rule rule_;
  State state_;
};

}  // namespace cistern
