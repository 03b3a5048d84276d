// The logistic function of single elements: the same formula on the CPU and on the GPU, and in
// Dice and SiLU. Internal to x_cpu.cc and x.cu.
#pragma once

#include <cmath>

#include "common/base/host_device.h"

namespace cistern::op {

// s(z) = 1 / (1 + exp(-z)), and 1 - s(z) = s(-z) without cancellation.
struct LogisticShares {
  float above, below;
};
CISTERN_HOST_DEVICE inline LogisticShares LogisticAt(float z) {
  const float e = expf(-fabsf(z)), large = 1.0f / (1.0f + e), small = e * large;
  return z < 0.0f ? LogisticShares{small, large} : LogisticShares{large, small};
}

// z s(z), and its derivative.
CISTERN_HOST_DEVICE inline float SiluAt(float z) {
  return z * LogisticAt(z).above;
}
CISTERN_HOST_DEVICE inline float SiluSlopeAt(float z) {
  const LogisticShares s = LogisticAt(z);
  return s.above * (1.0f + z * s.below);
}

}  // namespace cistern::op
