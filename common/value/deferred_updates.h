// Rows that a step does not touch, and still move (HugeCTR's update_type Global and LazyGlobal):
// what they have missed is made up when they are read next, instead of touching every row in every
// step.
//
// A row of such a table carries the number of the last step that is in it, behind its rule's state.
// Between two touches its gradients were zero, so how it moved follows from its own state and from
// the steps' sizes alone, whenever that is computed:
//
//   Momentum, Nesterov  a velocity that fades geometrically: the sum of k moves in closed form
//   Adam, Global        the steps themselves, one after another, with their own sizes: to the bit
//                       what a step over every row would have done. A move fades by
//                       r = beta1 / sqrt(beta2) a step, so after kFadedMove of the first one has
//                       been reached the rest, less than a float's rounding of what has been
//                       added, is left out and only m and v fade on: a row costs 198 steps at most
//                       with the usual constants, however long it was away
//   Adam, LazyGlobal    m / (sqrt(v) + epsilon) and the step size as they were at the last touch,
//                       times the sum of beta1^j: HugeCTR's formula (v2.3
//                       src/embeddings/update_params_functor.cu). There the gradient of a touch
//                       waits for the next one too; here it is applied at once, so that nothing
//                       is ever pending but missed steps
//
// Rules without such a memory (SGD, AdaGrad, FTRL) have nothing to make up.
#pragma once

#include <cmath>
#include <cstdint>

#include "common/base/host_device.h"
#include "common/value/update_rule.h"

namespace cistern {

// Of the first missed move: what is left out of the sum of Adam's.
inline constexpr double kFadedMove = 0x1p-30;

// Steps after which Adam's moves have faded; 0 if they do not fade (beta1 >= sqrt(beta2)).
CISTERN_HOST_DEVICE inline uint64_t FadingSteps(const RuleParams& rule) {
  const double r = static_cast<double>(rule.beta1) / sqrt(static_cast<double>(rule.beta2));
  if (!(r < 1)) return 0;
  if (r <= kFadedMove) return 1;
  return static_cast<uint64_t>(ceil(log(kFadedMove) / log(r)));
}

// x^k by squaring, so that every machine gives the same bits; in double, as rounding squares too.
CISTERN_HOST_DEVICE inline float PowerOf(double x, uint64_t k) {
  double power = 1.0;
  for (; k > 0; k >>= 1) {
    if ((k & 1) != 0) power *= x;
    x *= x;
  }
  return static_cast<float>(power);
}

// Steps from + 1 .. to of Adam without a gradient, for `lanes` <= kLanes weights: these stay in
// registers from the first step to the last.
template <uint32_t kLanes>
CISTERN_HOST_DEVICE inline void RepeatAdam(const RuleParams& rule, const float* step_sizes,
                                           uint64_t from, uint64_t to, uint32_t lanes,
                                           float* weight, float* m, float* v) {
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

// A row that no step has touched has nothing to move it, unless it was loaded with its state.
// state: m or the velocity first.
CISTERN_HOST_DEVICE inline bool IsStill(uint32_t n, const float* state) {
  for (uint32_t i = 0; i < n; ++i) {
    if (state[i] != 0.0f) return false;
  }
  return true;
}

// Makes up steps from + 1 .. to for `n` weights that were last part of step `from`.
//
// weight: [n]. state: [RuleStateFloats(rule.kind, n)]. step_sizes: StepSize() of step t at t - 1,
// up to `to`; other rules than Adam do not read it. fading_steps: FadingSteps(rule).
CISTERN_HOST_DEVICE inline void ApplyDeferredUpdates(const RuleParams& rule,
                                                     const float* step_sizes, uint64_t fading_steps,
                                                     uint64_t from, uint64_t to, uint32_t n,
                                                     float* weight, float* state) {
  constexpr uint32_t kVector = 16;  // weights at a time
  if (from >= to || (from == 0 && IsStill(n, state))) return;
  const uint64_t missed = to - from;
  switch (rule.kind) {
    case RuleKind::kAdam: {
      float* m = state;
      float* v = state + n;
      uint64_t left = missed;
      if (rule.update_type == UpdateType::kLazyGlobal) {
        const float faded = PowerOf(rule.beta1, missed);
        const float moves =
            step_sizes[from > 0 ? from - 1 : 0] * rule.beta1 * (1.0f - faded) / (1.0f - rule.beta1);
        for (uint32_t i = 0; i < n; ++i) weight[i] -= moves * m[i] / (sqrtf(v[i]) + rule.epsilon);
      } else {
        const bool fades = fading_steps > 0 && missed > fading_steps;
        const uint64_t last = fades ? from + fading_steps : to;
        if (n == 1) RepeatAdam<1>(rule, step_sizes, from, last, 1, weight, m, v);
        for (uint32_t i = 0; n > 1 && i < n; i += kVector) {
          const uint32_t lanes = n - i < kVector ? n - i : kVector;
          RepeatAdam<kVector>(rule, step_sizes, from, last, lanes, weight + i, m + i, v + i);
        }
        left = to - last;
      }
      if (left == 0) break;
      const float fade_m = PowerOf(rule.beta1, left), fade_v = PowerOf(rule.beta2, left);
      for (uint32_t i = 0; i < n; ++i) {
        m[i] *= fade_m;
        v[i] *= fade_v;
      }
      break;
    }
    case RuleKind::kMomentum:
    case RuleKind::kNesterov: {
      // A move without a gradient: beta v, beta^2 v for Nesterov; the next one beta times that.
      const float faded = PowerOf(rule.beta1, missed);
      const float first = rule.kind == RuleKind::kMomentum ? rule.beta1 : rule.beta1 * rule.beta1;
      const float moves = first * (1.0f - faded) / (1.0f - rule.beta1);
      for (uint32_t i = 0; i < n; ++i) {
        weight[i] += moves * state[i];
        state[i] *= faded;
      }
      break;
    }
    default:
      break;
  }
}

// The same for a row of a pass or of a table, whose state ends with the number of its last step
// (RowStateFloats); that becomes `mark`: `to`, or to + 1 where the row takes part in the next step.
// Whole numbers above 2^24 are rounded in a float: such a row is off by a step or two.
CISTERN_HOST_DEVICE inline void ApplyDeferredUpdatesToRow(const RuleParams& rule,
                                                          const float* step_sizes,
                                                          uint64_t fading_steps, uint64_t to,
                                                          uint64_t mark, uint32_t n, float* weight,
                                                          float* state) {
  float& last = state[RuleStateFloats(rule.kind, n)];
  ApplyDeferredUpdates(rule, step_sizes, fading_steps, static_cast<uint64_t>(last), to, n, weight,
                       state);
  last = static_cast<float>(mark);
}

}  // namespace cistern
