#include "cuda/op/dense/relu.h"

#include "common/base/check.h"
#include "cuda/op/dense/dropout_cpu.h"
#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/element.h"

namespace cistern::op {

namespace gpu {  // relu.cu
decltype(op::Relu) Relu;
decltype(op::ReluDropout) ReluDropout;
decltype(op::ReluDropoutBackward) ReluDropoutBackward;
}  // namespace gpu

namespace {

template <typename T>
void ReluOf(const T* x, T* y, size_t count) {
  ForPieces(count, kElementGrain, 2 * count, [=](size_t begin, size_t end) {
#pragma omp simd
    for (size_t i = begin; i < end; ++i) y[i] = float{x[i]} < 0.0f ? 0.0f : float{x[i]};
  });
}

template <typename T>
void ReluDropoutOf(const T* x, const DropoutDraw& draw, T* y, size_t b, size_t n) {
  const int32_t below = KeepBelow(draw.rate);
  const float scale = KeepScale(draw.rate);
  ForPieces(b, RowGrain(n), 4 * b * n, [=](size_t begin, size_t end) {
    uint16_t half[kDropoutChunk];
    for (size_t r = begin; r < end; ++r) {
      for (size_t first = 0; first < n; first += kDropoutChunk) {
        const size_t width = std::min(kDropoutChunk, n - first);
        DrawHalfWords(draw, n, r, first, width, half);
        const T* in = x + r * n + first;
        T* out = y + r * n + first;
#pragma omp simd
        for (size_t c = 0; c < width; ++c) {
          out[c] = DroppedRelu(in[c], half[c], below, scale);
        }
      }
    }
  });
}

template <typename T>
void ReluBackwardOf(const T* y, const T* dy, float scale, Write write, T* dx, size_t count) {
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

}  // namespace

void Relu(ConstValues x, Values y, size_t count, Stream& stream) {
  CISTERN_RUN_ON_GPU(Relu, x, y, count);
  ForType(x.type, [&]<typename T>() { ReluOf(As<T>(x), As<T>(y), count); });
}

void ReluBackward(ConstValues y, ConstValues dy, Write write, Values dx, size_t count,
                  Stream& stream) {
  ReluDropoutBackward(y, dy, 0.0f, write, dx, count, stream);
}

void ReluDropout(ConstValues x, const DropoutDraw& draw, Values y, size_t b, size_t n,
                 Stream& stream) {
  CISTERN_RUN_ON_GPU(ReluDropout, x, draw, y, b, n);
  CISTERN_CHECK(draw.rate >= 0.0f && draw.rate < 1.0f);
  ForType(x.type, [&]<typename T>() { ReluDropoutOf(As<T>(x), draw, As<T>(y), b, n); });
}

void ReluDropoutBackward(ConstValues y, ConstValues dy, float rate, Write write, Values dx,
                         size_t count, Stream& stream) {
  CISTERN_RUN_ON_GPU(ReluDropoutBackward, y, dy, rate, write, dx, count);
  ForType(y.type, [&]<typename T>() {
    ReluBackwardOf(As<T>(y), As<T>(dy), KeepScale(rate), write, As<T>(dx), count);
  });
}

}  // namespace cistern::op
