// The formula of JudgeStep, for both of its builds. Internal to x_cpu.cc and x.cu.
#pragma once

#include <cmath>

#include "common/host_device.h"
#include "cuda/op/step_gate.h"

namespace cistern::op {

// A float of this size has a square that is one, too: optimizers keep squares of gradients.
inline constexpr double kNormMax = 1.8e19;

// Clipping is torch.nn.utils.clip_grad_norm_'s: min(1, clip / (norm + 1e-6)).
CISTERN_HOST_DEVICE inline void Judge(const double* sums, size_t embeddings, const StepRule& rule,
                                      StepGate* gate) {
  double penalty = 0, squares = sums[2];
  for (size_t e = 0; e < embeddings; ++e) {
    penalty += rule.embedding_penalty * sums[3 + 2 * e];
    squares += sums[4 + 2 * e];
  }
  penalty += rule.dense_penalty * sums[1];
  const double loss = sums[0] + penalty, norm = sqrt(squares);
  const double clip = rule.clip_norm / (norm + 1e-6);
  gate->loss = loss;
  gate->grad_norm = norm;
  gate->factor = rule.clip_norm > 0 && clip < 1 ? static_cast<float>(clip) : 1.0f;
  const bool finite = loss - loss == 0 && norm * static_cast<double>(gate->factor) <= kNormMax;
  gate->open = finite && !(rule.stays_closed && gate->open == 0) ? 1u : 0u;
}

}  // namespace cistern::op
