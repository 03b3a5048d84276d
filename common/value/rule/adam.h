// Adam. Epsilon is added outside the root and is not bias-corrected; the bias correction is part of
// the step size (StepSize). Source: HugeCTR 2.3.
#pragma once

#include "common/value/rule/power.h"
#include "common/value/rule/rule_params.h"

namespace cistern {

// A deferred move of Adam that has shrunk to this share of the first one is left out of the sum.
inline constexpr double kFadedMove = 0x1p-30;

struct AdamRule : SteadyRule {
  static constexpr RuleKind kKind = RuleKind::kAdam;
  static constexpr RuleConstant kConstants[] = {
      {&RuleParams::beta1, "beta1", "beta1", "0.9", ConstantRange::kDecay,
       "decay of the mean of gradients (Adam)"},
      {&RuleParams::beta2, "beta2", "beta2", "0.999", ConstantRange::kDecay,
       "decay of the mean of squared gradients (Adam)"},
      {&RuleParams::epsilon, "epsilon", "epsilon", "1e-7", ConstantRange::kAboveZero,
       "added to the square root (Adam, AdaGrad)"}};
  static constexpr const char* kColumns[] = {"m", "v"};
  static constexpr const char* kFiles[] = {"Adam.m", "Adam.v"};
  static constexpr RuleInfo Info() {
    return {.kind = kKind,
            .type = "Adam",
            .hparam = "adam_hparam",
            .constants = kConstants,
            .columns = kColumns,
            .files = kFiles,
            .defers_updates = true,
            .step_sizes_vary = true};
  }

  // HugeCTR's: the bias correction of step `t` is part of it. In double.
  static float StepSize(const RuleParams& rule, double learning_rate, uint64_t t) {
    const double n = static_cast<double>(t);
    return static_cast<float>(learning_rate * std::sqrt(1.0 - std::pow(double(rule.beta2), n)) /
                              (1.0 - std::pow(double(rule.beta1), n)));
  }

  CISTERN_HOST_DEVICE static uint32_t StateFloats(uint32_t n) { return 2 * n; }

  // state: m[n], then v[n].
  CISTERN_HOST_DEVICE static void Apply(const RuleParams& rule, float step_size, uint32_t n,
                                        const float* grad, float* weight, float* state) {
    float* m = state;
    float* v = state + n;
    for (uint32_t i = 0; i < n; ++i) {
      m[i] = rule.beta1 * m[i] + (1.0f - rule.beta1) * grad[i];
      v[i] = rule.beta2 * v[i] + (1.0f - rule.beta2) * grad[i] * grad[i];
      weight[i] -= step_size * m[i] / (sqrtf(v[i]) + rule.epsilon);
    }
  }

  // kGlobal repeats the steps one by one, until the moves have faded. kLazyGlobal is HugeCTR's
  // formula (v2.3 src/embeddings/update_params_functor.cu): m / (sqrt(v) + epsilon) and the step
  // size of the last touch, times the sum of beta1^j.
  CISTERN_HOST_DEVICE static void ApplyDeferred(const RuleParams& rule, const float* step_sizes,
                                                uint64_t fading_steps, uint64_t from, uint64_t to,
                                                uint32_t n, float* weight, float* state) {
    constexpr uint32_t kVector = 16;  // weights at a time
    const uint64_t deferred = to - from;
    float* m = state;
    float* v = state + n;
    uint64_t left = deferred;
    if (rule.update_type == UpdateType::kLazyGlobal) {
      const float faded = PowerOf(rule.beta1, deferred);
      const float moves =
          step_sizes[from > 0 ? from - 1 : 0] * rule.beta1 * (1.0f - faded) / (1.0f - rule.beta1);
      for (uint32_t i = 0; i < n; ++i) weight[i] -= moves * m[i] / (sqrtf(v[i]) + rule.epsilon);
    } else {
      const bool fades = fading_steps > 0 && deferred > fading_steps;
      const uint64_t last = fades ? from + fading_steps : to;
      if (n == 1) Repeat<1>(rule, step_sizes, from, last, 1, weight, m, v);
      for (uint32_t i = 0; n > 1 && i < n; i += kVector) {
        const uint32_t lanes = n - i < kVector ? n - i : kVector;
        Repeat<kVector>(rule, step_sizes, from, last, lanes, weight + i, m + i, v + i);
      }
      left = to - last;
    }
    if (left == 0) return;
    const float fade_m = PowerOf(rule.beta1, left), fade_v = PowerOf(rule.beta2, left);
    for (uint32_t i = 0; i < n; ++i) {
      m[i] *= fade_m;
      v[i] *= fade_v;
    }
  }

 private:
  // Steps from + 1 .. to without a gradient, for `lanes` <= kLanes weights, which stay in registers
  // from the first step to the last.
  template <uint32_t kLanes>
  CISTERN_HOST_DEVICE static void Repeat(const RuleParams& rule, const float* step_sizes,
                                         uint64_t from, uint64_t to, uint32_t lanes, float* weight,
                                         float* m, float* v) {
    float w_now[kLanes] = {}, m_now[kLanes] = {}, v_now[kLanes] = {};
    for (uint32_t i = 0; i < lanes; ++i) {
      w_now[i] = weight[i];
      m_now[i] = m[i];
      v_now[i] = v[i];
    }
    for (uint64_t t = from; t < to; ++t) {
      const float step_size = step_sizes[t];
      for (uint32_t i = 0; i < kLanes; ++i) {
        m_now[i] = rule.beta1 * m_now[i];
        v_now[i] = rule.beta2 * v_now[i];
        w_now[i] -= step_size * m_now[i] / (sqrtf(v_now[i]) + rule.epsilon);
      }
    }
    for (uint32_t i = 0; i < lanes; ++i) {
      weight[i] = w_now[i];
      m[i] = m_now[i];
      v[i] = v_now[i];
    }
  }
};

}  // namespace cistern
