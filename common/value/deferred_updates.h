// Deferred updates: some rules move a row even in steps that do not touch it (HugeCTR's update_type
// Global and LazyGlobal). Instead of updating every row in every step, the missed updates are
// applied when the row is next read.
//
// A row of such a table stores the number of its last step after the state of its rule. Between two
// touches its gradients are zero, so the missed updates depend only on the row's own state and on
// the step sizes, and may be computed at any later time:
//
//   Momentum, Nesterov  the velocity decays geometrically: the sum of k updates in closed form
//   Adam, Global        the steps themselves, in order, each with its own step size: bit-identical
//                       to a step over every row. An update shrinks by r = beta1 / sqrt(beta2) per
//                       step. Once it is below kFadedMove times the first one, the remaining sum is
//                       below the rounding error of the weight and is left out; only m and v decay
//                       further. With the usual constants a row costs at most 198 steps, however
//                       long it was not read
//   Adam, LazyGlobal    m / (sqrt(v) + epsilon) and the step size as of the last touch, times the
//                       sum of beta1^j: HugeCTR's formula (v2.3
//                       src/embeddings/update_params_functor.cu). HugeCTR also defers the gradient
//                       of a touch to the next touch; here it is applied at once, so that only
//                       missed steps are ever pending
//
// Rules without momentum (SGD, AdaGrad, FTRL) have no deferred updates.
#pragma once

#include <cmath>
#include <cstdint>

#include "common/base/host_device.h"
#include "common/value/update_rule.h"

namespace cistern {

// Adam's updates are summed until they fall below this fraction of the first missed one.
inline constexpr double kFadedMove = 0x1p-30;

// Number of steps after which Adam's updates are below kFadedMove; 0 if they do not decay
// (beta1 >= sqrt(beta2)).
CISTERN_HOST_DEVICE inline uint64_t FadingSteps(const RuleParams& rule) {
  const double r = static_cast<double>(rule.beta1) / sqrt(static_cast<double>(rule.beta2));
  if (!(r < 1)) return 0;
  if (r <= kFadedMove) return 1;
  return static_cast<uint64_t>(ceil(log(kFadedMove) / log(r)));
}

// x^k by repeated squaring, so that every machine computes the same bits; in double, because
// squaring also amplifies rounding errors.
CISTERN_HOST_DEVICE inline float PowerOf(double x, uint64_t k) {
  double power = 1.0;
  for (; k > 0; k >>= 1) {
    if ((k & 1) != 0) power *= x;
    x *= x;
  }
  return static_cast<float>(power);
}

// Applies Adam's steps from + 1 .. to with a zero gradient to `lanes` <= kLanes weights, which stay
// in registers throughout.
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

// Whether a row that no step has touched cannot move: its m, or its velocity, is zero unless the
// row was loaded with its state. state: m or the velocity comes first.
CISTERN_HOST_DEVICE inline bool IsStill(uint32_t n, const float* state) {
  for (uint32_t i = 0; i < n; ++i) {
    if (state[i] != 0.0f) return false;
  }
  return true;
}

// Applies the deferred updates of steps from + 1 .. to to `n` weights whose last step was `from`.
//
// weight: [n]. state: [RuleStateFloats(rule.kind, n)]. step_sizes: [to], StepSize() of step t at
// index t - 1; read for Adam only. fading_steps: FadingSteps(rule).
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
      // An update with a zero gradient: beta v, or beta^2 v for Nesterov; each next one is beta
      // times the previous one.
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
// (RowStateFloats). Sets that number to `mark`: `to`, or to + 1 if the row takes part in the next
// step. A float rounds integers above 2^24, so from there on a row may be off by a step or two.
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
