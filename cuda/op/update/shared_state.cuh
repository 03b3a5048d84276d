// A step of AdaGradShared or AdaGradRowwise, whose rows have one float of state, by a group of
// lanes: a power of two of them, in one warp. Internal to x.cu.
#pragma once

#include "common/value/update_rule.h"
#include "cuda/op/primitive/launch.cuh"
#include "cuda/op/update/gradient_scaler.h"

namespace cistern::op {

// The sum over a group of lanes. All lanes of the warp call it.
template <typename T>
__device__ inline T GroupSum(T value, unsigned lanes) {
  for (unsigned offset = lanes / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(kFullWarp, value, static_cast<int>(offset));
  }
  return value;
}

// Whether StepSharedState knows the rule.
__host__ __device__ inline bool StepsByLanes(RuleKind kind) {
  return kind == RuleKind::kAdagradShared || kind == RuleKind::kAdagradRowwise;
}

// The gradient of weight e is Rescaled(grad[e], factor) * scale. The sum of the squares of all
// lanes is added in a tree, so it can differ from the rule's own in its last bits. active: false in
// a group without a row. All lanes of the warp call it; rule.kind is one of those above.
__device__ inline void StepSharedState(const RuleParams& rule, float step_size, float factor,
                                       float scale, uint32_t dim, const float* grad, float* weights,
                                       float* state, unsigned lane, unsigned lanes, bool active) {
  constexpr unsigned kTogether = 4;  // elements whose loads are in flight together
  const uint32_t end = active ? dim : 0;
  float squares = 0.0f;
#pragma unroll 4
  for (uint32_t e = lane; e < end; e += lanes) {
    const float g = Rescaled(grad[e], factor) * scale;
    squares += g * g;
  }
  const float before = GroupSum(active && lane == 0 ? state[0] : 0.0f, lanes);
  const float after = before + GroupSum(squares, lanes) / static_cast<float>(dim);
  const float ratio = rule.kind == RuleKind::kAdagradRowwise
                          ? AdagradRowwiseRule::Ratio(rule, step_size, after)
                          : AdagradSharedRule::Ratio(rule, step_size, before);
  for (uint32_t first = lane; first < end; first += kTogether * lanes) {
    float g[kTogether], w[kTogether];
#pragma unroll
    for (unsigned k = 0; k < kTogether; ++k) {
      const uint32_t e = first + k * lanes;
      if (e >= end) continue;
      g[k] = Rescaled(grad[e], factor) * scale;
      w[k] = weights[e];
    }
#pragma unroll
    for (unsigned k = 0; k < kTogether; ++k) {
      const uint32_t e = first + k * lanes;
      if (e < end) weights[e] = ClipWeight(w[k] - ratio * g[k], rule.weight_bound);
    }
  }
  if (active && lane == 0) state[0] = after;
}

}  // namespace cistern::op
