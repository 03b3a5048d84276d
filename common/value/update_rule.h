// The update rules: how weights follow their gradients. Each rule is one file in rule/, shared by
// the server's CPU, the worker's CPU and the GPU. This file lists the rules and selects the one of
// a RuleKind.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/host_device.h"
#include "common/value/rule/adagrad.h"
#include "common/value/rule/adagrad_rowwise.h"
#include "common/value/rule/adagrad_shared.h"
#include "common/value/rule/adagrad_std.h"
#include "common/value/rule/adam.h"
#include "common/value/rule/adamw.h"
#include "common/value/rule/ftrl.h"
#include "common/value/rule/momentum.h"
#include "common/value/rule/rule_params.h"
#include "common/value/rule/sgd.h"

// Every rule, in the order of docs/configuration.md. A new one is a file in rule/, a line here, and
// a number in RuleKind and v1.UpdateRule.Kind.
#define CISTERN_UPDATE_RULES(RULE) \
  RULE(AdamRule)                   \
  RULE(SgdRule)                    \
  RULE(MomentumRule)               \
  RULE(NesterovRule)               \
  RULE(AdagradRule)                \
  RULE(FtrlRule)                   \
  RULE(AdagradSharedRule)          \
  RULE(AdagradStdRule)             \
  RULE(AdagradRowwiseRule)         \
  RULE(AdamWRule)                  \
  CISTERN_MORE_UPDATE_RULES(RULE)

// Rules of a program that compiles these sources with its own (test/common/value/toy_rule.h).
#ifndef CISTERN_MORE_UPDATE_RULES
#define CISTERN_MORE_UPDATE_RULES(RULE)
#endif

namespace cistern {

// All rules, as listed.
absl::Span<const RuleInfo> UpdateRules();
// Stops the process if no rule has this kind.
const RuleInfo& InfoOf(RuleKind kind);
// The rule with this "type" in a model file; null if there is none.
const RuleInfo* FindUpdateRule(absl::string_view type);

// The floats of state that a rule keeps for `n` weights, directly after the weights in a value.
CISTERN_HOST_DEVICE inline uint32_t RuleStateFloats(RuleKind kind, uint32_t n) {
  switch (kind) {
#define CISTERN_RULE(Rule) \
  case Rule::kKind:        \
    return Rule::StateFloats(n);
    CISTERN_UPDATE_RULES(CISTERN_RULE)
#undef CISTERN_RULE
  }
  return 0;
}

// Whether the weights of a row share one float of state (RuleInfo::one_state_a_row), so that none
// can move without the others.
CISTERN_HOST_DEVICE inline bool SharesState(RuleKind kind) {
  return RuleStateFloats(kind, 2) == 1;
}

// The maximum of floats of state per weight, of rules with a state for each weight: Adam's m and v.
inline constexpr uint32_t kMaxStateFields = 2;

// The same for a row of a table. Where updates are deferred, the number of the row's last step
// comes after the rule's state.
CISTERN_HOST_DEVICE inline uint32_t RowStateFloats(const RuleParams& rule, uint32_t n) {
  return RuleStateFloats(rule.kind, n) + (rule.update_type != UpdateType::kLocal && n > 0 ? 1 : 0);
}

// The factor that a step multiplies its update with: the learning rate, or what the rule makes of
// it for step `t` (1, 2, ...).
inline float StepSize(const RuleParams& rule, double learning_rate, uint64_t t) {
  switch (rule.kind) {
#define CISTERN_RULE(Rule) \
  case Rule::kKind:        \
    return Rule::StepSize(rule, learning_rate, t);
    CISTERN_UPDATE_RULES(CISTERN_RULE)
#undef CISTERN_RULE
  }
  return 0.0f;
}

// The rule with the constants of step `t`, as ApplyRule needs them.
inline RuleParams RuleAtStep(RuleParams rule, double learning_rate, uint64_t t) {
  switch (rule.kind) {
#define CISTERN_RULE(Rule)                 \
  case Rule::kKind:                        \
    Rule::AtStep(learning_rate, t, &rule); \
    break;
    CISTERN_UPDATE_RULES(CISTERN_RULE)
#undef CISTERN_RULE
  }
  return rule;
}

// Appends what deferred updates need of step `t`: InfoOf(rule.kind).step_floats floats, StepSize()
// first.
inline void AppendStep(const RuleParams& rule, double learning_rate, uint64_t t,
                       std::vector<float>* steps) {
  if (rule.kind == RuleKind::kAdamW) return AdamWRule::AppendStep(rule, learning_rate, t, steps);
  steps->push_back(StepSize(rule, learning_rate, t));
}

CISTERN_HOST_DEVICE inline float ClipWeight(float w, float bound) {
  if (bound <= 0.0f) return w;
  return w < -bound ? -bound : (w > bound ? bound : w);
}

// Applies one step to `n` weights.
//
// grad, weight: [n]. state: [RuleStateFloats(kind, n)], in the layout that the rule's Apply
// documents. rule: RuleAtStep(). step_size: StepSize(). Gradients must be finite (checked where
// they enter).
CISTERN_HOST_DEVICE inline void ApplyRule(const RuleParams& rule, float step_size, uint32_t n,
                                          const float* grad, float* weight, float* state) {
  if (n == 0) return;
  switch (rule.kind) {
#define CISTERN_RULE(Rule)                                \
  case Rule::kKind:                                       \
    Rule::Apply(rule, step_size, n, grad, weight, state); \
    break;
    CISTERN_UPDATE_RULES(CISTERN_RULE)
#undef CISTERN_RULE
  }
  if (rule.weight_bound > 0.0f) {
    for (uint32_t i = 0; i < n; ++i) weight[i] = ClipWeight(weight[i], rule.weight_bound);
  }
}

}  // namespace cistern
