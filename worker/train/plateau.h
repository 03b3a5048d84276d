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
  // What was seen so far; a default one has seen nothing.
  struct State {
    bool seen = false;
    double best = 0;
    double scale = 1;
    uint32_t epochs_without_gain = 0;
    bool operator==(const State&) const = default;
  };
  explicit Plateau(const Rule& rule) : rule_(rule) {}
  Plateau(const Rule& rule, const State& state) : rule_(rule), state_(state) {}

  // Takes the value of one epoch; true if it is the best so far.
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

  // What learning rates are multiplied with; starts at 1.
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
