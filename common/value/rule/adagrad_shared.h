// AdaGrad with one sum for the whole row, to which the mean of the squared gradients is added after
// the weights have moved. Source: PSLib's SparseAdaGrad.
#pragma once

#include "common/value/rule/rule_params.h"

namespace cistern {

struct AdagradSharedRule : MemorylessRule {
  static constexpr RuleKind kKind = RuleKind::kAdagradShared;
  static constexpr RuleConstant kConstants[] = {{&RuleParams::initial_g2sum, "initial_g2sum",
                                                 "initial_g2sum", "3", ConstantRange::kAboveZero,
                                                 "G0 of sqrt(G0 / (G0 + sum))"}};
  static constexpr const char* kFiles[] = {"AdaGradShared.accm"};
  static constexpr RuleInfo Info() {
    return {.kind = kKind,
            .type = "AdaGradShared",
            .constants = kConstants,
            .files = kFiles,
            .one_state_a_row = true};
  }

  CISTERN_HOST_DEVICE static uint32_t StateFloats(uint32_t n) { return n > 0 ? 1 : 0; }

  // What a gradient is multiplied with before `sum` grows.
  CISTERN_HOST_DEVICE static float Ratio(const RuleParams& rule, float step_size, float sum) {
    return step_size * sqrtf(rule.initial_g2sum / (rule.initial_g2sum + sum));
  }

  // state: the sum, [1].
  CISTERN_HOST_DEVICE static void Apply(const RuleParams& rule, float step_size, uint32_t n,
                                        const float* grad, float* weight, float* state) {
    const float ratio = Ratio(rule, step_size, state[0]);
    float sum = 0.0f;
    for (uint32_t i = 0; i < n; ++i) {
      weight[i] -= ratio * grad[i];
      sum += grad[i] * grad[i];
    }
    state[0] += sum / static_cast<float>(n);
  }
};

}  // namespace cistern
