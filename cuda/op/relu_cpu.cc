#include "cuda/op/relu.h"

#include "common/check.h"
#include "cuda/op/cpu.h"
#include "cuda/op/dropout_cpu.h"

namespace cistern::op {

namespace gpu {  // relu.cu
decltype(op::Relu) Relu;
decltype(op::ReluDropout) ReluDropout;
decltype(op::ReluDropoutBackward) ReluDropoutBackward;
}  // namespace gpu

void Relu(const float* x, float* y, size_t count, Stream& stream) {
  CISTERN_RUN_ON_GPU(Relu, x, y, count);
  ForPieces(count, kElementGrain, 2 * count, [=](size_t begin, size_t end) {
#pragma omp simd
    for (size_t i = begin; i < end; ++i) y[i] = x[i] < 0.0f ? 0.0f : x[i];
  });
}

void ReluBackward(const float* y, const float* dy, Write write, float* dx, size_t count,
                  Stream& stream) {
  ReluDropoutBackward(y, dy, 0.0f, write, dx, count, stream);
}

void ReluDropout(const float* x, const DropoutDraw& draw, float* y, size_t b, size_t n,
                 Stream& stream) {
  CISTERN_RUN_ON_GPU(ReluDropout, x, draw, y, b, n);
  CISTERN_CHECK(draw.rate >= 0.0f && draw.rate < 1.0f);
  const int32_t below = KeepBelow(draw.rate);
  const float scale = KeepScale(draw.rate);
  ForPieces(b, RowGrain(n), 4 * b * n, [=](size_t begin, size_t end) {
    uint16_t half[kDropoutChunk];
    for (size_t r = begin; r < end; ++r) {
      for (size_t first = 0; first < n; first += kDropoutChunk) {
        const size_t width = std::min(kDropoutChunk, n - first);
        DrawHalfWords(draw, n, r, first, width, half);
        const float* in = x + r * n + first;
        float* out = y + r * n + first;
#pragma omp simd
        for (size_t c = 0; c < width; ++c) {
          out[c] = DroppedRelu(in[c], half[c], below, scale);
        }
      }
    }
  });
}

void ReluDropoutBackward(const float* y, const float* dy, float rate, Write write, float* dx,
                         size_t count, Stream& stream) {
  CISTERN_RUN_ON_GPU(ReluDropoutBackward, y, dy, rate, write, dx, count);
  const float scale = KeepScale(rate);
  ForPieces(count, kElementGrain, 3 * count, [=](size_t begin, size_t end) {
    if (write == Write::kOverwrite) {
#pragma omp simd
      for (size_t i = begin; i < end; ++i) dx[i] = BehindRelu(y[i], dy[i], scale);
    } else {
#pragma omp simd
      for (size_t i = begin; i < end; ++i) dx[i] += BehindRelu(y[i], dy[i], scale);
    }
  });
}

}  // namespace cistern::op
