// Memory traffic per element of s bytes: Dropout 2 s + 1 (x, y, mask), DropoutBackward 2 s + 1
// (3 s + 1 where it accumulates). About 25 integer operations per element for the random draw, an
// eighth of a Philox block.
#include "cuda/op/dense/dropout.h"

#include "common/base/check.h"
#include "cuda/op/dense/dropout_draw.cuh"
#include "cuda/op/primitive/map_packs.cuh"

namespace cistern::op::gpu {
namespace {

template <typename T>
void DropoutOf(const T* x, const DropoutDraw& draw, T* y, uint8_t* mask, size_t b, size_t n,
               Stream& stream) {
  const int32_t below = KeepBelow(draw.rate);
  const float scale = KeepScale(draw.rate);
  DropoutRows("Dropout", x, draw, y, mask, b, n, stream,
              [=] __device__(float in, size_t, uint16_t half) {
                return in * KeepFactor(half < below, scale);
              });
}

template <typename T>
void DropoutBackwardOf(const T* dy, const uint8_t* mask, float scale, Write write, T* dx,
                       size_t count, Stream& stream) {
  MapArrays(
      "DropoutBackward", count, write, dx, stream,
      [=] __device__(float g, float kept) { return g * KeepFactor(kept != 0.0f, scale); },
      ArrayOf<T>{dy}, ArrayOf<uint8_t>{mask});
}

}  // namespace

void Dropout(ConstValues x, const DropoutDraw& draw, Values y, uint8_t* mask, size_t b, size_t n,
             Stream& stream) {
  CISTERN_CHECK(draw.rate >= 0.0f && draw.rate < 1.0f);
  ForType(x.type, [&]<typename T>() { DropoutOf(As<T>(x), draw, As<T>(y), mask, b, n, stream); });
}

void DropoutBackward(ConstValues dy, const uint8_t* mask, float rate, Write write, Values dx,
                     size_t b, size_t n, Stream& stream) {
  ForType(dy.type, [&]<typename T>() {
    DropoutBackwardOf(As<T>(dy), mask, KeepScale(rate), write, As<T>(dx), b * n, stream);
  });
}

}  // namespace cistern::op::gpu
