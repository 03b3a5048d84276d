// Memory traffic per element of s bytes: Relu 2 s, ReluDropout 2 s, backward 3 s (4 s where it
// accumulates).
#include "cuda/op/dense/relu.h"

#include "common/base/check.h"
#include "cuda/op/dense/dropout_draw.cuh"
#include "cuda/op/primitive/map_packs.cuh"

namespace cistern::op::gpu {
namespace {

template <typename T>
void ReluOf(const T* x, T* y, size_t count, Stream& stream) {
  MapArrays(
      "Relu", count, Write::kOverwrite, y, stream,
      [=] __device__(float in) { return in < 0.0f ? 0.0f : in; }, ArrayOf<T>{x});
}

template <typename T>
void ReluDropoutOf(const T* x, const DropoutDraw& draw, T* y, size_t b, size_t n, Stream& stream) {
  const int32_t below = KeepBelow(draw.rate);
  const float scale = KeepScale(draw.rate);
  DropoutRows("ReluDropout", x, draw, y, nullptr, b, n, stream,
              [=] __device__(float in, size_t, uint16_t half) {
                return DroppedRelu(in, half, below, scale);
              });
}

template <typename T>
void ReluBackwardOf(const T* y, const T* dy, float scale, Write write, T* dx, size_t count,
                    Stream& stream) {
  MapArrays(
      "ReluDropoutBackward", count, write, dx, stream,
      [=] __device__(float out, float g) { return BehindRelu(out, g, scale); }, ArrayOf<T>{y},
      ArrayOf<T>{dy});
}

}  // namespace

void Relu(ConstValues x, Values y, size_t count, Stream& stream) {
  ForType(x.type, [&]<typename T>() { ReluOf(As<T>(x), As<T>(y), count, stream); });
}

void ReluDropout(ConstValues x, const DropoutDraw& draw, Values y, size_t b, size_t n,
                 Stream& stream) {
  CISTERN_CHECK(draw.rate >= 0.0f && draw.rate < 1.0f);
  ForType(x.type, [&]<typename T>() { ReluDropoutOf(As<T>(x), draw, As<T>(y), b, n, stream); });
}

void ReluDropoutBackward(ConstValues y, ConstValues dy, float rate, Write write, Values dx,
                         size_t count, Stream& stream) {
  ForType(y.type, [&]<typename T>() {
    ReluBackwardOf(As<T>(y), As<T>(dy), KeepScale(rate), write, As<T>(dx), count, stream);
  });
}

}  // namespace cistern::op::gpu
