// The draw of op::Dropout on the CPU, in the form that the fused ops need: the half-words of a
// piece of one row. Internal to x_cpu.cc.
#pragma once

#include "cuda/op/dropout.h"

namespace cistern::op {

// Columns drawn at a time: a stack array.
inline constexpr size_t kDropoutChunk = 512;

// An element is kept iff its half-word is below this: 1 - (h + 1) / 65536 >= rate.
inline int32_t KeepBelow(float rate) {
  return static_cast<int32_t>(65536.0 * (1.0 - static_cast<double>(rate)));
}

inline float KeepScale(float rate) {
  return static_cast<float>(1.0 / (1.0 - static_cast<double>(rate)));
}

// The arithmetic of one element. It selects a factor and multiplies always: a compiler does not
// vectorize a product that would happen on one side of a branch only.

inline float KeepFactor(bool kept, float scale) {
  return kept ? scale : 0.0f;
}

inline float DroppedRelu(float x, uint16_t half, int32_t below, float scale) {
  return (x < 0.0f ? 0.0f : x) * KeepFactor(half < below, scale);
}

// The gradient behind a ReLU, or a ReLU and dropout, with output y.
inline float BehindRelu(float y, float dy, float scale) {
  return dy * KeepFactor(y > 0.0f, scale);
}

// Writes the half-words of columns [first, first + width) of a row of an [b, n] matrix.
//
// first: a multiple of 8. half: [width rounded up to a multiple of 32].
void DrawHalfWords(const DropoutDraw& draw, size_t n, size_t row, size_t first, size_t width,
                   uint16_t* half);

}  // namespace cistern::op
