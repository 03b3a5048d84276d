// The update rules that apply a gradient to a row's weights. The server's CPU, the worker's CPU and
// the GPU share one implementation of each rule.
//
// Sources: HugeCTR 2.3 (sparse Adam, AdaGrad, momentum, Nesterov), PSLib's SparseAdaGrad and
// StdAdaGrad, FTRL-Proximal of McMahan et al. 2013 (algorithm 1). Comments mark where the originals
// differ from the textbook.
#pragma once

#include <cmath>
#include <cstdint>

#include "common/base/host_device.h"

namespace cistern {

enum class RuleKind : int32_t {
  kSgd = 0,
  kAdagrad = 1,
  kAdagradShared = 2,
  kAdam = 3,
  kAdagradStd = 4,
  kMomentum = 5,
  kNesterov = 6,
  kFtrl = 7,
};

// What happens to rows that a step does not touch: they stay (kLocal), or the missed updates are
// deferred until the row is read (deferred_updates.h).
enum class UpdateType : int32_t { kLocal = 0, kGlobal = 1, kLazyGlobal = 2 };

// A rule and its constants: plain data, copied into kernels.
struct RuleParams {
  RuleKind kind = RuleKind::kSgd;
  float beta1 = 0.9f;  // kMomentum, kNesterov: the momentum factor
  float beta2 = 0.999f;
  float epsilon = 1e-7f;
  float initial_g2sum = 3.0f;
  float weight_bound = 0.0f;  // 0: none
  float ftrl_beta = 1.0f;
  float lambda1 = 0.0f;
  float lambda2 = 0.0f;
  UpdateType update_type = UpdateType::kLocal;
};

// The number of state floats for `n` weights; the state directly follows the weights in a value.
CISTERN_HOST_DEVICE inline uint32_t RuleStateFloats(RuleKind kind, uint32_t n) {
  switch (kind) {
    case RuleKind::kSgd:
      return 0;
    case RuleKind::kAdagrad:
      return n;
    case RuleKind::kAdagradShared:
      return n > 0 ? 1 : 0;
    case RuleKind::kAdam:
      return 2 * n;
    case RuleKind::kAdagradStd:
    case RuleKind::kMomentum:
    case RuleKind::kNesterov:
      return n;
    case RuleKind::kFtrl:
      return 2 * n;
  }
  return 0;
}

// The same for a row of a table: with deferred updates, the number of the row's last step follows
// the state of the rule.
CISTERN_HOST_DEVICE inline uint32_t RowStateFloats(const RuleParams& rule, uint32_t n) {
  return RuleStateFloats(rule.kind, n) + (rule.update_type != UpdateType::kLocal && n > 0 ? 1 : 0);
}

// The factor of a step's update. For Adam it includes the bias correction of step `t` (1, 2, ...),
// as in HugeCTR: lr * sqrt(1 - beta2^t) / (1 - beta1^t), computed in double. For the other rules it
// is the learning rate.
inline float StepSize(const RuleParams& rule, double learning_rate, uint64_t t) {
  if (rule.kind != RuleKind::kAdam) return static_cast<float>(learning_rate);
  const double n = static_cast<double>(t);
  return static_cast<float>(learning_rate * std::sqrt(1.0 - std::pow(double(rule.beta2), n)) /
                            (1.0 - std::pow(double(rule.beta1), n)));
}

CISTERN_HOST_DEVICE inline float ClipWeight(float w, float bound) {
  if (bound <= 0.0f) return w;
  return w < -bound ? -bound : (w > bound ? bound : w);
}

// Applies one step to `n` weights.
//
// grad, weight: [n]. state: [RuleStateFloats(kind, n)]; Adam: m[n] then v[n]; FTRL: z[n] then n[n].
// step_size: StepSize(). Gradients must be finite (checked where they enter).
CISTERN_HOST_DEVICE inline void ApplyRule(const RuleParams& rule, float step_size, uint32_t n,
                                          const float* grad, float* weight, float* state) {
  if (n == 0) return;
  switch (rule.kind) {
    case RuleKind::kSgd:
      for (uint32_t i = 0; i < n; ++i) weight[i] -= step_size * grad[i];
      break;
    case RuleKind::kAdagrad:  // updates the sum first, then takes the step
      for (uint32_t i = 0; i < n; ++i) {
        state[i] += grad[i] * grad[i];
        weight[i] -= step_size * grad[i] / (sqrtf(rule.initial_g2sum + state[i]) + rule.epsilon);
      }
      break;
    case RuleKind::kAdagradShared: {  // the step uses the old sum; then adds the mean square
      const float ratio = step_size * sqrtf(rule.initial_g2sum / (rule.initial_g2sum + state[0]));
      float sum = 0.0f;
      for (uint32_t i = 0; i < n; ++i) {
        weight[i] -= ratio * grad[i];
        sum += grad[i] * grad[i];
      }
      state[0] += sum / static_cast<float>(n);
      break;
    }
    case RuleKind::kAdagradStd:
      for (uint32_t i = 0; i < n; ++i) {
        weight[i] -=
            step_size * grad[i] * sqrtf(rule.initial_g2sum / (rule.initial_g2sum + state[i]));
        state[i] += grad[i] * grad[i];
      }
      break;
    case RuleKind::kAdam: {  // epsilon outside the root and not bias-corrected (HugeCTR)
      float* m = state;
      float* v = state + n;
      for (uint32_t i = 0; i < n; ++i) {
        m[i] = rule.beta1 * m[i] + (1.0f - rule.beta1) * grad[i];
        v[i] = rule.beta2 * v[i] + (1.0f - rule.beta2) * grad[i] * grad[i];
        weight[i] -= step_size * m[i] / (sqrtf(v[i]) + rule.epsilon);
      }
      break;
    }
    case RuleKind::kMomentum:  // the velocity includes the learning rate of its steps (HugeCTR)
      for (uint32_t i = 0; i < n; ++i) {
        state[i] = rule.beta1 * state[i] - step_size * grad[i];
        weight[i] += state[i];
      }
      break;
    case RuleKind::kNesterov:
      for (uint32_t i = 0; i < n; ++i) {
        const float old = state[i];
        state[i] = rule.beta1 * old - step_size * grad[i];
        weight[i] += (1.0f + rule.beta1) * state[i] - rule.beta1 * old;
      }
      break;
    case RuleKind::kFtrl: {  // the weight is a function of z and n alone, even after the first step
      if (step_size == 0.0f) break;  // avoids a division by zero
      float* z = state;
      float* sum = state + n;
      for (uint32_t i = 0; i < n; ++i) {
        const float old_root = sqrtf(sum[i]);
        sum[i] += grad[i] * grad[i];
        const float root = sqrtf(sum[i]);
        z[i] += grad[i] - (root - old_root) / step_size * weight[i];
        const float beyond = fabsf(z[i]) - rule.lambda1;
        const float slope = (rule.ftrl_beta + root) / step_size + rule.lambda2;
        weight[i] = beyond > 0.0f ? -copysignf(beyond, z[i]) / slope : 0.0f;
      }
      break;
    }
  }
  if (rule.weight_bound > 0.0f) {
    for (uint32_t i = 0; i < n; ++i) weight[i] = ClipWeight(weight[i], rule.weight_bound);
  }
}

}  // namespace cistern
