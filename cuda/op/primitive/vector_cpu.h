// Vector operations of the CPU builds. Internal to x_cpu.cc.
#pragma once

#include <cstddef>

namespace cistern::op {

// A separate function: gcc 12 does not vectorize a reduction inside a parallel lambda.
template <typename T>
inline float Dot(const T* a, const T* b, size_t n) {
  float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
  for (size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// y += factor * x.
inline void AddScaled(const float* x, float factor, float* y, size_t n) {
#pragma omp simd
  for (size_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

// x *= factor.
inline void ScaleBy(float factor, float* x, size_t n) {
  if (factor == 1.0f) return;
#pragma omp simd
  for (size_t i = 0; i < n; ++i) x[i] *= factor;
}

}  // namespace cistern::op
