// Four neighbouring elements in one load or store: 16 bytes of floats, 8 of 16-bit elements.
// Internal to x.cu.
#pragma once

#include <cstdint>

#include "cuda/op/element.h"

namespace cistern::op {

template <typename T>
struct alignas(4 * sizeof(T)) Quad {
  T x, y, z, w;
};

// Whether quads may be read from here on.
template <typename T>
inline bool HoldsQuads(const T* x) {
  return reinterpret_cast<uintptr_t>(x) % sizeof(Quad<T>) == 0;
}

__device__ inline float4 LoadQuad(const float* x) {
  return *reinterpret_cast<const float4*>(x);
}
template <typename T>
__device__ inline float4 LoadQuad(const T* x) {
  const Quad<T> quad = *reinterpret_cast<const Quad<T>*>(x);
  return make_float4(quad.x, quad.y, quad.z, quad.w);
}

__device__ inline void StoreQuad(float* x, float4 value) {
  *reinterpret_cast<float4*>(x) = value;
}
template <typename T>
__device__ inline void StoreQuad(T* x, float4 value) {
  *reinterpret_cast<Quad<T>*>(x) = {T(value.x), T(value.y), T(value.z), T(value.w)};
}

}  // namespace cistern::op
