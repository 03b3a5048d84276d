// Memory traffic per element of s bytes: Elu 2 s, backward 3 s (4 s where it accumulates). One
// exponential per element, about 10 FLOPs.
#include "cuda/op/dense/elu.h"

#include "cuda/op/primitive/map_packs.cuh"

namespace cistern::op::gpu {
namespace {

template <typename T>
void EluOf(const T* x, float alpha, T* y, size_t count, Stream& stream) {
  MapArrays(
      "Elu", count, Write::kOverwrite, y, stream,
      [=] __device__(float in) { return in < 0.0f ? alpha * expm1f(in) : in; }, ArrayOf<T>{x});
}

template <typename T>
void EluBackwardOf(const T* x, float alpha, const T* dy, Write write, T* dx, size_t count,
                   Stream& stream) {
  MapArrays(
      "EluBackward", count, write, dx, stream,
      [=] __device__(float in, float g) { return in < 0.0f ? alpha * expf(in) * g : g; },
      ArrayOf<T>{x}, ArrayOf<T>{dy});
}

}  // namespace

void Elu(ConstValues x, float alpha, Values y, size_t count, Stream& stream) {
  ForType(x.type, [&]<typename T>() { EluOf(As<T>(x), alpha, As<T>(y), count, stream); });
}

void EluBackward(ConstValues x, float alpha, ConstValues dy, Write write, Values dx, size_t count,
                 Stream& stream) {
  ForType(x.type, [&]<typename T>() {
    EluBackwardOf(As<T>(x), alpha, As<T>(dy), write, As<T>(dx), count, stream);
  });
}

}  // namespace cistern::op::gpu
