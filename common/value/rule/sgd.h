// Stochastic gradient descent.
#pragma once

#include "common/value/rule/rule_params.h"

namespace cistern {

struct SgdRule : MemorylessRule {
  static constexpr RuleKind kKind = RuleKind::kSgd;
  static constexpr RuleInfo Info() {
    return {.kind = kKind, .type = "SGD", .hparam = "sgd_hparam"};
  }

  CISTERN_HOST_DEVICE static uint32_t StateFloats(uint32_t) { return 0; }

  CISTERN_HOST_DEVICE static void Apply(const RuleParams&, float step_size, uint32_t n,
                                        const float* grad, float* weight, float*) {
    for (uint32_t i = 0; i < n; ++i) weight[i] -= step_size * grad[i];
  }
};

}  // namespace cistern
