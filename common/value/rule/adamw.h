// AdamW: Adam whose weights shrink by a share of the learning rate in every step, whatever their
// gradients. Sources: Loshchilov and Hutter 2019, algorithm 2; epsilon is added to the corrected
// root, as PyTorch's torch.optim.AdamW does it (Adam's here is not).
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/value/rule/adam.h"
#include "common/value/rule/power.h"
#include "common/value/rule/rule_params.h"

namespace cistern {

struct AdamWRule {
  static constexpr RuleKind kKind = RuleKind::kAdamW;
  static constexpr RuleConstant kConstants[] = {
      {&RuleParams::beta1, "beta1", "beta1", "0.9", ConstantRange::kDecay,
       "decay of the mean of gradients"},
      {&RuleParams::beta2, "beta2", "beta2", "0.999", ConstantRange::kDecay,
       "decay of the mean of squared gradients"},
      {&RuleParams::epsilon, "epsilon", "epsilon", "1e-8", ConstantRange::kAboveZero,
       "added to the square root"},
      {&RuleParams::weight_decay, "weight_decay", "weight_decay", "0.01",
       ConstantRange::kZeroOrAbove, "a step subtracts learning_rate * weight_decay * w"}};
  static constexpr const char* kColumns[] = {"m", "v"};
  static constexpr const char* kFiles[] = {"AdamW.m", "AdamW.v"};
  static constexpr RuleInfo Info() {
    return {.kind = kKind,
            .type = "AdamW",
            .hparam = "adamw_hparam",
            .constants = kConstants,
            .columns = kColumns,
            .files = kFiles,
            .defers_updates = true,
            .step_sizes_vary = true,
            .step_floats = kStepFloats};
  }

  static float StepSize(const RuleParams& rule, double learning_rate, uint64_t t) {
    return AdamRule::StepSize(rule, learning_rate, t);
  }

  // PyTorch divides by sqrt(v / (1 - beta2^t)) + epsilon, which is (sqrt(v) + e) / sqrt(1 -
  // beta2^t) with this step's e = epsilon * sqrt(1 - beta2^t).
  static void AtStep(double learning_rate, uint64_t t, RuleParams* rule) {
    const double root = std::sqrt(1.0 - std::pow(double(rule->beta2), static_cast<double>(t)));
    rule->epsilon = static_cast<float>(rule->epsilon * root);
    rule->step_decay = static_cast<float>(learning_rate * rule->weight_decay);
  }

  // What deferred updates need of a step: its size, decay and epsilon, and the logarithm of what
  // the decays from step 1 to this one leave of a weight, as a float and the rest of it.
  static constexpr uint32_t kStepFloats = 5;
  static void AppendStep(const RuleParams& rule, double learning_rate, uint64_t t,
                         std::vector<float>* steps) {
    constexpr double kLeast = 1e-30;  // a decay of 1 leaves nothing
    RuleParams step = rule;
    AtStep(learning_rate, t, &step);
    const size_t end = steps->size();
    const double before = end == 0 ? 0.0 : double((*steps)[end - 2]) + (*steps)[end - 1];
    const double left = before + std::log(std::max(kLeast, 1.0 - double(step.step_decay)));
    const float high = static_cast<float>(left);
    const float values[] = {StepSize(rule, learning_rate, t), step.step_decay, step.epsilon, high,
                            static_cast<float>(left - high)};
    steps->insert(steps->end(), values, values + kStepFloats);
  }

  CISTERN_HOST_DEVICE static uint32_t StateFloats(uint32_t n) { return 2 * n; }

  // rule: AtStep. state: m[n], then v[n].
  CISTERN_HOST_DEVICE static void Apply(const RuleParams& rule, float step_size, uint32_t n,
                                        const float* grad, float* weight, float* state) {
    float* m = state;
    float* v = state + n;
    for (uint32_t i = 0; i < n; ++i) {
      m[i] = rule.beta1 * m[i] + (1.0f - rule.beta1) * grad[i];
      v[i] = rule.beta2 * v[i] + (1.0f - rule.beta2) * grad[i] * grad[i];
      weight[i] -= rule.step_decay * weight[i];
      if (step_size == 0.0f) continue;  // at a rate of zero, epsilon may be zero, too
      weight[i] -= step_size * m[i] / (sqrtf(v[i]) + rule.epsilon);
    }
  }

  // Repeats the steps one by one until Adam's moves have faded; from there on only the decays of
  // the weight remain, whose product has a closed form.
  CISTERN_HOST_DEVICE static void ApplyDeferred(const RuleParams& rule, const float* steps,
                                                uint64_t fading_steps, uint64_t from, uint64_t to,
                                                uint32_t n, float* weight, float* state) {
    const bool fades = fading_steps > 0 && to - from > fading_steps;
    const uint64_t last = fades ? from + fading_steps : to;
    RuleParams step = rule;
    for (uint32_t i = 0; i < n; ++i) {
      const float none = 0.0f;
      float own[2] = {state[i], state[n + i]};
      for (uint64_t t = from; t < last; ++t) {
        const float* const of = steps + t * kStepFloats;
        step.step_decay = of[1];
        step.epsilon = of[2];
        Apply(step, of[0], 1, &none, weight + i, own);
      }
      state[i] = own[0];
      state[n + i] = own[1];
    }
    if (last == to) return;
    const float fade_m = PowerOf(rule.beta1, to - last), fade_v = PowerOf(rule.beta2, to - last);
    const float* const end = steps + (to - 1) * kStepFloats + 3;
    const float* const begin = steps + (last - 1) * kStepFloats + 3;
    const float kept = expf((end[0] - begin[0]) + (end[1] - begin[1]));
    for (uint32_t i = 0; i < n; ++i) {
      weight[i] *= kept;
      state[i] *= fade_m;
      state[n + i] *= fade_v;
    }
  }
};

}  // namespace cistern
