// FTRL-Proximal: after each step the weight is a function of z and n alone.
// Source: McMahan et al., "Ad Click Prediction: a View from the Trenches", 2013, algorithm 1.
#pragma once

#include "common/value/rule/rule_params.h"

namespace cistern {

struct FtrlRule : MemorylessRule {
  static constexpr RuleKind kKind = RuleKind::kFtrl;
  static constexpr RuleConstant kConstants[] = {
      {&RuleParams::ftrl_beta, "ftrl_beta", "beta", "1", ConstantRange::kAboveZero,
       "added to the square root"},
      {&RuleParams::lambda1, "lambda1", "lambda1", "0", ConstantRange::kZeroOrAbove,
       "L1 penalty: weights with |z| <= lambda1 are zero"},
      {&RuleParams::lambda2, "lambda2", "lambda2", "0", ConstantRange::kZeroOrAbove, "L2 penalty"}};
  static constexpr const char* kColumns[] = {"z", "n"};
  static constexpr const char* kFiles[] = {"Ftrl.z", "Ftrl.n"};
  static constexpr RuleInfo Info() {
    return {.kind = kKind,
            .type = "Ftrl",
            .hparam = "ftrl_hparam",
            .constants = kConstants,
            .columns = kColumns,
            .files = kFiles};
  }

  CISTERN_HOST_DEVICE static uint32_t StateFloats(uint32_t n) { return 2 * n; }

  // state: z[n], then n[n].
  CISTERN_HOST_DEVICE static void Apply(const RuleParams& rule, float step_size, uint32_t n,
                                        const float* grad, float* weight, float* state) {
    if (step_size == 0.0f) return;  // a rate of zero divides by zero
    float* z = state;
    float* sum = state + n;
    for (uint32_t i = 0; i < n; ++i) {
      const float old_root = sqrtf(sum[i]);
      sum[i] += grad[i] * grad[i];
      const float root = sqrtf(sum[i]);
      z[i] += grad[i] - (root - old_root) / step_size * weight[i];
      const float beyond = fabsf(z[i]) - rule.lambda1;
      const float slope = (rule.ftrl_beta + root) / step_size + rule.lambda2;
      weight[i] = beyond > 0.0f ? -copysignf(beyond, z[i]) / slope : 0.0f;
    }
  }
};

}  // namespace cistern
