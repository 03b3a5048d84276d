// Quads: four neighbouring elements in one load or store, 16 bytes of floats or 8 of 16-bit types.
// Internal to x.cu.
#pragma once

#include "cuda/op/primitive/pack.cuh"

namespace cistern::op {

template <typename T>
struct alignas(4 * sizeof(T)) Quad {
  T x, y, z, w;
};

// Whether `x` is aligned to quads.
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

template <typename T>
__device__ inline void StoreQuad(T* x, float4 value) {
  Pack<T, 4> quad;
  quad.Set(0, value.x);
  quad.Set(1, value.y);
  quad.Set(2, value.z);
  quad.Set(3, value.w);
  quad.Store(x);
}

}  // namespace cistern::op
