// Dropout and ReLU of one element, identical on the CPU and on a GPU. Internal to x_cpu.cc and
// x.cu.
#pragma once

#include "common/base/host_device.h"
#include "cuda/op/dense/dropout.h"

namespace cistern::op {

// An element is kept iff its half-word is below this: 1 - (h + 1) / 65536 >= rate.
inline int32_t KeepBelow(float rate) {
  return static_cast<int32_t>(65536.0 * (1.0 - static_cast<double>(rate)));
}

inline float KeepScale(float rate) {
  return static_cast<float>(1.0 / (1.0 - static_cast<double>(rate)));
}

// The arithmetic of one element. It always multiplies, by a selected factor: compilers do not
// vectorize a product that is only on one side of a branch.

CISTERN_HOST_DEVICE inline float KeepFactor(bool kept, float scale) {
  return kept ? scale : 0.0f;
}

CISTERN_HOST_DEVICE inline float DroppedRelu(float x, uint16_t half, int32_t below, float scale) {
  return (x < 0.0f ? 0.0f : x) * KeepFactor(half < below, scale);
}

// The gradient in front of a ReLU, or of a ReLU and dropout, with output y.
CISTERN_HOST_DEVICE inline float BehindRelu(float y, float dy, float scale) {
  return dy * KeepFactor(y > 0.0f, scale);
}

}  // namespace cistern::op
