// Bytes that must move, a float of x: Dropout 9 (x, y, mask), DropoutBackward 9 (13 where it
// accumulates). About 25 integer operations a float for the draw, an eighth of a Philox block.
#include "cuda/op/dropout.h"

#include "common/check.h"
#include "cuda/op/dropout_draw.cuh"

namespace cistern::op::gpu {

void Dropout(const float* x, const DropoutDraw& draw, float* y, uint8_t* mask, size_t b, size_t n,
             Stream& stream) {
  CISTERN_CHECK(draw.rate >= 0.0f && draw.rate < 1.0f);
  const int32_t below = KeepBelow(draw.rate);
  const float scale = KeepScale(draw.rate);
  DropoutRows("Dropout", x, draw, y, mask, b, n, stream,
              [=] __device__(float in, size_t, uint16_t half) {
                return in * KeepFactor(half < below, scale);
              });
}

void DropoutBackward(const float* dy, const uint8_t* mask, float rate, Write write, float* dx,
                     size_t b, size_t n, Stream& stream) {
  const float scale = KeepScale(rate);
  Map("DropoutBackward", b * n, write, dx, stream,
      [=] __device__(size_t i) { return dy[i] * KeepFactor(mask[i] != 0, scale); });
}

}  // namespace cistern::op::gpu
