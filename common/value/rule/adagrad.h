// AdaGrad with a sum of squared gradients for each weight. The sum grows first, then the weight
// moves. Source: HugeCTR 2.3.
#pragma once

#include "common/value/rule/rule_params.h"

namespace cistern {

struct AdagradRule : MemorylessRule {
  static constexpr RuleKind kKind = RuleKind::kAdagrad;
  static constexpr RuleConstant kConstants[] = {
      {&RuleParams::initial_g2sum, "initial_g2sum", "initial_accu_value", "0",
       ConstantRange::kZeroOrAbove, "initial value of the sums of squares"},
      {&RuleParams::epsilon, "epsilon", "epsilon", "1e-7", ConstantRange::kAboveZero,
       "added to the square root"}};
  static constexpr const char* kColumns[] = {"g2sum"};
  static constexpr const char* kFiles[] = {"AdaGrad.accm"};
  static constexpr RuleInfo Info() {
    return {.kind = kKind,
            .type = "AdaGrad",
            .hparam = "adagrad_hparam",
            .constants = kConstants,
            .columns = kColumns,
            .files = kFiles};
  }

  CISTERN_HOST_DEVICE static uint32_t StateFloats(uint32_t n) { return n; }

  // state: the sums, [n].
  CISTERN_HOST_DEVICE static void Apply(const RuleParams& rule, float step_size, uint32_t n,
                                        const float* grad, float* weight, float* state) {
    for (uint32_t i = 0; i < n; ++i) {
      state[i] += grad[i] * grad[i];
      weight[i] -= step_size * grad[i] / (sqrtf(rule.initial_g2sum + state[i]) + rule.epsilon);
    }
  }
};

}  // namespace cistern
