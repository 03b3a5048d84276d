// AdagradSharedRule's formula with a sum for each weight. Source: PSLib's StdAdaGrad.
#pragma once

#include "common/value/rule/adagrad_shared.h"

namespace cistern {

struct AdagradStdRule : MemorylessRule {
  static constexpr RuleKind kKind = RuleKind::kAdagradStd;
  static constexpr const char* kColumns[] = {"g2sum"};
  static constexpr const char* kFiles[] = {"AdaGradStd.accm"};
  static constexpr RuleInfo Info() {
    return {.kind = kKind,
            .type = "AdaGradStd",
            .constants = AdagradSharedRule::kConstants,
            .columns = kColumns,
            .files = kFiles};
  }

  CISTERN_HOST_DEVICE static uint32_t StateFloats(uint32_t n) { return n; }

  // state: the sums, [n].
  CISTERN_HOST_DEVICE static void Apply(const RuleParams& rule, float step_size, uint32_t n,
                                        const float* grad, float* weight, float* state) {
    for (uint32_t i = 0; i < n; ++i) {
      weight[i] -=
          step_size * grad[i] * sqrtf(rule.initial_g2sum / (rule.initial_g2sum + state[i]));
      state[i] += grad[i] * grad[i];
    }
  }
};

}  // namespace cistern
