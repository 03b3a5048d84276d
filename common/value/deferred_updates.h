// Deferred updates: some rules move a row even in steps that do not touch it (HugeCTR's update_type
// Global and LazyGlobal). Instead of updating every row in every step, these updates are deferred
// and applied when the row is next read.
//
// A row of such a table stores the number of its last step after the state of its rule. Between two
// touches its gradients are zero, so the deferred updates depend only on the row's own state and on
// the step sizes, and can be computed at any later time (ApplyDeferred of each file in rule/):
//
//   Momentum, Nesterov  the velocity decays geometrically: the sum of k updates in closed form
//   Adam, Global        the steps themselves, in order, each with its own step size: bit-identical
//                       to a step over every row. An update shrinks by r = beta1 / sqrt(beta2) per
//                       step. Once it is below kFadedMove times the first one, the remaining sum is
//                       below the rounding error of the weight and is left out; only m and v decay
//                       further. With the usual constants a row costs at most 198 steps, however
//                       long it was not read
//   AdamW, Global       the same, with the decay of each step; the decays of the steps left out
//                       have a closed form
//   Adam, LazyGlobal    m / (sqrt(v) + epsilon) and the step size as of the last touch, times the
//                       sum of beta1^j: HugeCTR's formula (v2.3
//                       src/embeddings/update_params_functor.cu). HugeCTR also defers the gradient
//                       of a touch to the next touch; here it is applied at once, so that only
//                       steps without a gradient are ever pending
//
// Rules without momentum (SGD, AdaGrad, FTRL) have no deferred updates.
#pragma once

#include <cmath>
#include <cstdint>

#include "common/base/host_device.h"
#include "common/value/update_rule.h"

namespace cistern {

// Steps after which Adam's moves have faded; 0 if they do not fade (beta1 >= sqrt(beta2)).
CISTERN_HOST_DEVICE inline uint64_t FadingSteps(const RuleParams& rule) {
  const double r = static_cast<double>(rule.beta1) / sqrt(static_cast<double>(rule.beta2));
  if (!(r < 1)) return 0;
  if (r <= kFadedMove) return 1;
  return static_cast<uint64_t>(ceil(log(kFadedMove) / log(r)));
}

// Whether nothing moves a row that no step has touched: true unless it was loaded with its state.
// state: m or the velocity first.
CISTERN_HOST_DEVICE inline bool IsStill(uint32_t n, const float* state) {
  for (uint32_t i = 0; i < n; ++i) {
    if (state[i] != 0.0f) return false;
  }
  return true;
}

// Applies steps from + 1 .. to, all without a gradient, to `n` weights whose last step was `from`.
//
// weight: [n]. state: [RuleStateFloats(rule.kind, n)]. step_sizes: what AppendStep appends for
// steps 1 .. `to`; rules other than Adam and AdamW do not read it. fading_steps: FadingSteps(rule).
CISTERN_HOST_DEVICE inline void ApplyDeferredUpdates(const RuleParams& rule,
                                                     const float* step_sizes, uint64_t fading_steps,
                                                     uint64_t from, uint64_t to, uint32_t n,
                                                     float* weight, float* state) {
  if (from >= to || (from == 0 && IsStill(n, state))) return;
  switch (rule.kind) {
#define CISTERN_RULE(Rule) \
  case Rule::kKind:        \
    return Rule::ApplyDeferred(rule, step_sizes, fading_steps, from, to, n, weight, state);
    CISTERN_UPDATE_RULES(CISTERN_RULE)
#undef CISTERN_RULE
  }
}

// The same for a row of a pass or of a table, whose state ends with the number of its last step
// (RowStateFloats). Sets that number to `mark`: `to`, or to + 1 if the row takes part in the next
// step. A float rounds integers above 2^24, so from there on a row may be off by a step or two.
CISTERN_HOST_DEVICE inline void ApplyDeferredUpdatesToRow(const RuleParams& rule,
                                                          const float* step_sizes,
                                                          uint64_t fading_steps, uint64_t to,
                                                          uint64_t mark, uint32_t n, float* weight,
                                                          float* state) {
  float& last = state[RuleStateFloats(rule.kind, n)];
  // A number that no step has, from a damaged row, counts as up to date.
  const bool is_step = last >= 0.0f && last < 0x1p63f;
  const uint64_t from = is_step ? static_cast<uint64_t>(last) : to;
  ApplyDeferredUpdates(rule, step_sizes, fading_steps, from, to, n, weight, state);
  last = static_cast<float>(mark);
}

}  // namespace cistern
