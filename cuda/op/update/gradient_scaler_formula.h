// The formula of UpdateGradientScaler for CPU and GPU. Internal to x_cpu.cc and x.cu.
#pragma once

#include <cmath>

#include "common/base/host_device.h"
#include "cuda/op/update/gradient_scaler.h"

namespace cistern::op {

// The square of a float of this size is still finite: optimizers keep squares of gradients.
inline constexpr double kNormMax = 1.8e19;

// Sets the loss scale of the next step.
CISTERN_HOST_DEVICE inline void AdjustLossScale(GradientScaler* scaler) {
  if (scaler->overflowed != 0) {
    scaler->loss_scale /= 2;
    scaler->good_steps = 0;
  } else if (scaler->updates_allowed != 0 && ++scaler->good_steps == kStepsToDoubleScale) {
    if (scaler->loss_scale < kLargestLossScale) scaler->loss_scale *= 2;
    scaler->good_steps = 0;
  }
}

// Clipping as in torch.nn.utils.clip_grad_norm_: min(1, clip / (norm + 1e-6)).
CISTERN_HOST_DEVICE inline void UpdateScaler(const double* sums, size_t embeddings,
                                             const StepRule& rule, GradientScaler* scaler) {
  double penalty = 0, squares = sums[2];
  for (size_t e = 0; e < embeddings; ++e) {
    penalty += rule.embedding_penalty * sums[3 + 2 * e];
    squares += sums[4 + 2 * e];
  }
  penalty += rule.dense_penalty * sums[1];
  const float scale = scaler->loss_scale;
  const double loss = sums[0] + penalty, norm = sqrt(squares) / static_cast<double>(scale);
  const double clip = rule.clip_norm / (norm + 1e-6);
  scaler->loss = loss;
  scaler->grad_norm = norm;
  const float clipped = rule.clip_norm > 0 && clip < 1 ? static_cast<float>(clip) : 1.0f;
  scaler->factor = clipped / scale;
  const bool loss_finite = loss - loss == 0;
  const bool norm_fits = norm * static_cast<double>(clipped) <= kNormMax;
  const bool failed = rule.stays_closed && scaler->updates_allowed == 0 && scaler->overflowed == 0;
  const bool scales = rule.scaling == LossScaling::kConstant ||
                      (rule.scaling == LossScaling::kDynamic && scale > 1);
  scaler->updates_allowed = loss_finite && norm_fits && !failed ? 1u : 0u;
  scaler->overflowed = loss_finite && !norm_fits && scales && !failed ? 1u : 0u;
  if (rule.scaling == LossScaling::kDynamic) AdjustLossScale(scaler);
}

}  // namespace cistern::op
