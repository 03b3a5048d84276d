// AdaGrad with one sum for the whole row: the mean of the squared gradients is added first, then
// the weights move. Source: FBGEMM's exact row-wise AdaGrad, the usual rule of TorchRec's tables.
#pragma once

#include "common/value/rule/rule_params.h"

namespace cistern {

struct AdagradRowwiseRule : MemorylessRule {
  static constexpr RuleKind kKind = RuleKind::kAdagradRowwise;
  static constexpr RuleConstant kConstants[] = {{&RuleParams::epsilon, "epsilon", "epsilon", "1e-7",
                                                 ConstantRange::kAboveZero,
                                                 "added to the square root"}};
  static constexpr const char* kFiles[] = {"AdaGradRowwise.accm"};
  static constexpr RuleInfo Info() {
    return {.kind = kKind,
            .type = "AdaGradRowwise",
            .constants = kConstants,
            .files = kFiles,
            .one_state_a_row = true};
  }

  CISTERN_HOST_DEVICE static uint32_t StateFloats(uint32_t n) { return n > 0 ? 1 : 0; }

  // What a gradient is multiplied with after `sum` has grown.
  CISTERN_HOST_DEVICE static float Ratio(const RuleParams& rule, float step_size, float sum) {
    return step_size / (sqrtf(sum) + rule.epsilon);
  }

  // state: the sum, [1].
  CISTERN_HOST_DEVICE static void Apply(const RuleParams& rule, float step_size, uint32_t n,
                                        const float* grad, float* weight, float* state) {
    float sum = 0.0f;
    for (uint32_t i = 0; i < n; ++i) sum += grad[i] * grad[i];
    state[0] += sum / static_cast<float>(n);
    const float ratio = Ratio(rule, step_size, state[0]);
    for (uint32_t i = 0; i < n; ++i) weight[i] -= ratio * grad[i];
  }
};

}  // namespace cistern
