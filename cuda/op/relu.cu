// Bytes that must move, a float of x: Relu 8, ReluDropout 8, backward 12 (16 where it accumulates).
#include "cuda/op/relu.h"

#include "common/check.h"
#include "cuda/op/dropout_draw.cuh"

namespace cistern::op::gpu {

void Relu(const float* x, float* y, size_t count, Stream& stream) {
  Map("Relu", count, Write::kOverwrite, y, stream,
      [=] __device__(size_t i) { return x[i] < 0.0f ? 0.0f : x[i]; });
}

void ReluDropout(const float* x, const DropoutDraw& draw, float* y, size_t b, size_t n,
                 Stream& stream) {
  CISTERN_CHECK(draw.rate >= 0.0f && draw.rate < 1.0f);
  const int32_t below = KeepBelow(draw.rate);
  const float scale = KeepScale(draw.rate);
  DropoutRows("ReluDropout", x, draw, y, nullptr, b, n, stream,
              [=] __device__(float in, size_t, uint16_t half) {
                return DroppedRelu(in, half, below, scale);
              });
}

void ReluDropoutBackward(const float* y, const float* dy, float rate, Write write, float* dx,
                         size_t count, Stream& stream) {
  const float scale = KeepScale(rate);
  Map("ReluDropoutBackward", count, write, dx, stream,
      [=] __device__(size_t i) { return BehindRelu(y[i], dy[i], scale); });
}

}  // namespace cistern::op::gpu
