// An update rule that the library does not know. The sources of the list are compiled with this
// header first, as a fork or a plug-in would do it (test/common/value/CMakeLists.txt).
#pragma once

#include "common/value/rule/rule_params.h"

namespace cistern {

// w -= step_size * sign(g); the state counts the steps of each weight.
struct SignRule : MemorylessRule {
  static constexpr RuleKind kKind = static_cast<RuleKind>(77);
  static constexpr RuleInfo Info() {
    return {.kind = kKind, .type = "Sign", .hparam = "sign_hparam", .columns = {}};
  }

  CISTERN_HOST_DEVICE static uint32_t StateFloats(uint32_t n) { return n; }

  CISTERN_HOST_DEVICE static void Apply(const RuleParams&, float step_size, uint32_t n,
                                        const float* grad, float* weight, float* state) {
    for (uint32_t i = 0; i < n; ++i) {
      weight[i] -= grad[i] > 0 ? step_size : -step_size;
      state[i] += 1;
    }
  }
};

}  // namespace cistern

#define CISTERN_MORE_UPDATE_RULES(RULE) RULE(SignRule)
