// Momentum and Nesterov's momentum. The velocity sums gradients that are already multiplied by
// their step sizes (HugeCTR 2.3), so a new learning rate affects later gradients only.
#pragma once

#include "common/value/rule/power.h"
#include "common/value/rule/rule_params.h"

namespace cistern {

// What the two rules share: a velocity for each weight.
struct VelocityRule : PlainStepRule {
  static constexpr RuleConstant kConstants[] = {
      {&RuleParams::beta1, "beta1", "momentum_factor", "0", ConstantRange::kDecay,
       "fraction of the previous step that a step keeps"}};
  static constexpr const char* kColumns[] = {"velocity"};
  static constexpr RuleInfo InfoOf(RuleKind kind, const char* type, const char* hparam,
                                   absl::Span<const char* const> files) {
    return {.kind = kind,
            .type = type,
            .hparam = hparam,
            .constants = kConstants,
            .columns = kColumns,
            .files = files,
            .defers_updates = true};
  }

  CISTERN_HOST_DEVICE static uint32_t StateFloats(uint32_t n) { return n; }

  // Applies the moves of `steps` steps without a gradient, as one sum in closed form. first: the
  // first move as a fraction of the velocity. Each later move is beta1 times the previous one.
  CISTERN_HOST_DEVICE static void Coast(const RuleParams& rule, float first, uint64_t steps,
                                        uint32_t n, float* weight, float* state) {
    const float faded = PowerOf(rule.beta1, steps);
    const float moves = first * (1.0f - faded) / (1.0f - rule.beta1);
    for (uint32_t i = 0; i < n; ++i) {
      weight[i] += moves * state[i];
      state[i] *= faded;
    }
  }
};

struct MomentumRule : VelocityRule {
  static constexpr RuleKind kKind = RuleKind::kMomentum;
  // HugeCTR's spelling of the file name is part of the format.
  static constexpr const char* kFiles[] = {"MomentumSGD.momtentum"};
  static constexpr RuleInfo Info() {
    return InfoOf(kKind, "MomentumSGD", "momentum_sgd_hparam", kFiles);
  }

  // state: the velocities, [n].
  CISTERN_HOST_DEVICE static void Apply(const RuleParams& rule, float step_size, uint32_t n,
                                        const float* grad, float* weight, float* state) {
    for (uint32_t i = 0; i < n; ++i) {
      state[i] = rule.beta1 * state[i] - step_size * grad[i];
      weight[i] += state[i];
    }
  }

  CISTERN_HOST_DEVICE static void ApplyDeferred(const RuleParams& rule, const float*, uint64_t,
                                                uint64_t from, uint64_t to, uint32_t n,
                                                float* weight, float* state) {
    Coast(rule, rule.beta1, to - from, n, weight, state);
  }
};

struct NesterovRule : VelocityRule {
  static constexpr RuleKind kKind = RuleKind::kNesterov;
  static constexpr const char* kFiles[] = {"Nesterov.accm"};
  static constexpr RuleInfo Info() { return InfoOf(kKind, "Nesterov", "nesterov_hparam", kFiles); }

  // state: the velocities, [n].
  CISTERN_HOST_DEVICE static void Apply(const RuleParams& rule, float step_size, uint32_t n,
                                        const float* grad, float* weight, float* state) {
    for (uint32_t i = 0; i < n; ++i) {
      const float old = state[i];
      state[i] = rule.beta1 * old - step_size * grad[i];
      weight[i] += (1.0f + rule.beta1) * state[i] - rule.beta1 * old;
    }
  }

  CISTERN_HOST_DEVICE static void ApplyDeferred(const RuleParams& rule, const float*, uint64_t,
                                                uint64_t from, uint64_t to, uint32_t n,
                                                float* weight, float* state) {
    Coast(rule, rule.beta1 * rule.beta1, to - from, n, weight, state);
  }
};

}  // namespace cistern
