// Whether a training step may move anything, decided on the device: so that the host need not wait
// for the sums of a step before it enqueues the updates, and the next step.
#pragma once

#include "common/base/host_device.h"
#include "cuda/op/primitive/op.h"

namespace cistern::op {

// What a step's sums say. In the memory of the device.
struct GradientScaler {
  double loss = 0;       // mean over the batch, regularizers included
  double grad_norm = 0;  // of all gradients, before clipping
  // Of all gradients, where they move something: 1 over their scale, and less where the norm is
  // clipped.
  float factor = 1;
  // 0: the loss is not a finite number, or the norm none whose square a float holds; no update
  // happens.
  uint32_t updates_allowed = 1;

  // What the gradients of the next step are multiplied by from the loss on, so that small ones are
  // not lost to float16. Sums of gradients are of scaled ones; loss, norm and factor are not.
  float loss_scale = 1;
  uint32_t good_steps = 0;  // since the scale last changed
  uint32_t overflowed = 0;  // 1: closed only because scaled gradients were not finite
};

// A null scaler is open, and no factor is on its gradients.
CISTERN_HOST_DEVICE inline bool UpdatesAllowed(const GradientScaler* scaler) {
  return scaler == nullptr || scaler->updates_allowed != 0;
}
CISTERN_HOST_DEVICE inline float FactorOf(const GradientScaler* scaler) {
  return scaler == nullptr ? 1.0f : scaler->factor;
}
// x * factor, rounded: joined with no sum that stands behind it.
CISTERN_HOST_DEVICE inline float Rescaled(float x, float factor) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(x, factor);
#else
  return x * factor;
#endif
}

// A scale that follows the gradients, with the numbers of torch.amp.GradScaler: half after a step
// that overflowed, twice after so many in a row that did not. It stays a power of two from 1 to a
// largest one.
inline constexpr float kFirstLossScale = 65536;
inline constexpr float kLargestLossScale = 16777216;
inline constexpr uint32_t kStepsToDoubleScale = 2000;

enum class LossScaling {
  kNone,      // the scale is 1
  kConstant,  // what it was when the scaler was made
  kDynamic,
};

// How the sums of a step make its loss and norm.
struct StepRule {
  double dense_penalty = 0;      // times the sum over the dense weights
  double embedding_penalty = 0;  // times the sum of squares of each embedding's rows
  double clip_norm = 0;          // gradients are scaled down to this norm; 0: never
  // A scaler that is closed stays so, until its owner opens it: nothing follows a step that failed.
  bool stays_closed = true;
  // With a scale, gradients that are not finite close the scaler for one step: they say that the
  // scale is too large, unless a dynamic one is 1. A loss that is not finite is never forgiven.
  LossScaling scaling = LossScaling::kNone;
};

// Sets *scaler from sums: loss, dense penalty, dense squares, then of each embedding its penalty
// and its squares. sums: [3 + 2 * embeddings].
void UpdateGradientScaler(const double* sums, size_t embeddings, const StepRule& rule,
                          GradientScaler* scaler, Stream& stream);

// to = from where the scaler is open. from, to: [count].
void CopyIfUpdatesAllowed(const GradientScaler* scaler, const float* from, float* to, size_t count,
                          Stream& stream);

}  // namespace cistern::op
