// The gradient scaler: decides on the device whether the updates of a training step are allowed or
// skipped, and sets the loss scale. The host therefore enqueues the updates and the next step
// without waiting for the sums of this step.
#pragma once

#include "common/base/host_device.h"
#include "cuda/op/primitive/op.h"

namespace cistern::op {

// The state of the gradient scaler, in device memory.
struct GradientScaler {
  double loss = 0;       // mean over the batch, regularizers included
  double grad_norm = 0;  // of all gradients, before clipping
  // Multiplies all gradients in the update: 1 / loss scale, times the clipping coefficient.
  float factor = 1;
  // 0: updates are skipped, because the loss is not finite or the norm is not a number whose square
  // fits a float.
  uint32_t updates_allowed = 1;

  // The loss scale of the next step: its gradients are multiplied by this from the loss on, so that
  // small ones do not underflow in float16. Sums of gradients are over scaled gradients; loss,
  // grad_norm and the clipping coefficient are for unscaled ones.
  float loss_scale = 1;
  uint32_t good_steps = 0;  // steps without overflow since the scale last changed
  uint32_t overflowed = 0;  // 1: updates are skipped only because scaled gradients overflowed
};

// A null scaler allows updates and has factor 1.
CISTERN_HOST_DEVICE inline bool UpdatesAllowed(const GradientScaler* scaler) {
  return scaler == nullptr || scaler->updates_allowed != 0;
}
CISTERN_HOST_DEVICE inline float FactorOf(const GradientScaler* scaler) {
  return scaler == nullptr ? 1.0f : scaler->factor;
}
// x * factor, rounded on its own: never fused with a following addition.
CISTERN_HOST_DEVICE inline float Rescaled(float x, float factor) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(x, factor);
#else
  return x * factor;
#endif
}

// Dynamic loss scaling with the constants of torch.amp.GradScaler: the scale halves after a step
// that overflows and doubles after kStepsToDoubleScale consecutive steps that do not. It stays a
// power of two from 1 to kLargestLossScale.
inline constexpr float kFirstLossScale = 65536;
inline constexpr float kLargestLossScale = 16777216;
inline constexpr uint32_t kStepsToDoubleScale = 2000;

enum class LossScaling {
  kNone,      // the scale is 1
  kConstant,  // the scale stays at its initial value
  kDynamic,
};

// How loss and norm are computed from the sums of a step.
struct StepRule {
  double dense_penalty = 0;      // times the sum over the dense weights
  double embedding_penalty = 0;  // times the sum of squares of each embedding's rows
  double clip_norm = 0;          // gradients are clipped to this norm; 0: no clipping
  // Once a step fails, updates stay skipped until the owner resets the scaler: no step follows a
  // failed one.
  bool stays_closed = true;
  // With loss scaling, gradients that are not finite skip the updates of one step only: the scale
  // is too large. Exception: a dynamic scale of 1. A loss that is not finite always fails.
  LossScaling scaling = LossScaling::kNone;
};

// Sets *scaler from the sums: loss, dense penalty, dense squares, then penalty and squares of each
// embedding. sums: [3 + 2 * embeddings].
void UpdateGradientScaler(const double* sums, size_t embeddings, const StepRule& rule,
                          GradientScaler* scaler, Stream& stream);

// to = from if updates are allowed. from, to: [count].
void CopyIfUpdatesAllowed(const GradientScaler* scaler, const float* from, float* to, size_t count,
                          Stream& stream);

}  // namespace cistern::op
