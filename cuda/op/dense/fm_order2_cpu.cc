#include "cuda/op/dense/fm_order2.h"

#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/element.h"

namespace cistern::op {

namespace gpu {  // fm_order2.cu
decltype(op::FmOrder2) FmOrder2;
decltype(op::FmOrder2Backward) FmOrder2Backward;
}  // namespace gpu

namespace {

constexpr size_t kFmChunk = 64;  // embedding dimensions whose sums stay in cache

template <typename T>
void FmOrder2ForwardOf(const T* x, size_t stride, T* y, size_t b, size_t slots, size_t dim) {
  ForPieces(b, RowGrain(slots * dim), b * slots * dim, [=](size_t begin, size_t end) {
    float sum[kFmChunk], squares[kFmChunk];
    for (size_t i = begin; i < end; ++i) {
      for (size_t first = 0; first < dim; first += kFmChunk) {
        const size_t width = std::min(kFmChunk, dim - first);
        std::fill_n(sum, width, 0.0f);
        std::fill_n(squares, width, 0.0f);
        for (size_t s = 0; s < slots; ++s) {
          const T* v = x + i * stride + s * dim + first;
#pragma omp simd
          for (size_t e = 0; e < width; ++e) {
            sum[e] += v[e];
            squares[e] += v[e] * v[e];
          }
        }
        T* out = y + i * dim + first;
#pragma omp simd
        for (size_t e = 0; e < width; ++e) out[e] = 0.5f * (sum[e] * sum[e] - squares[e]);
      }
    }
  });
}

template <typename T>
void FmOrder2BackwardOf(const T* x, size_t stride, const T* dy, Write write, T* dx, size_t b,
                        size_t slots, size_t dim) {
  ForPieces(b, RowGrain(slots * dim), 2 * b * slots * dim, [=](size_t begin, size_t end) {
    float sum[kFmChunk];
    for (size_t i = begin; i < end; ++i) {
      for (size_t first = 0; first < dim; first += kFmChunk) {
        const size_t width = std::min(kFmChunk, dim - first);
        std::fill_n(sum, width, 0.0f);
        for (size_t s = 0; s < slots; ++s) {
          const T* v = x + i * stride + s * dim + first;
#pragma omp simd
          for (size_t e = 0; e < width; ++e) sum[e] += v[e];
        }
        const T* g = dy + i * dim + first;
        for (size_t s = 0; s < slots; ++s) {
          const T* v = x + i * stride + s * dim + first;
          T* out = dx + i * stride + s * dim + first;
          if (write == Write::kAccumulate) {
#pragma omp simd
            for (size_t e = 0; e < width; ++e) out[e] += g[e] * (sum[e] - v[e]);
          } else {
#pragma omp simd
            for (size_t e = 0; e < width; ++e) out[e] = g[e] * (sum[e] - v[e]);
          }
        }
      }
    }
  });
}

}  // namespace

void FmOrder2(ConstValues x, size_t x_stride, Values y, size_t b, size_t slots, size_t dim,
              Stream& stream) {
  CISTERN_RUN_ON_GPU(FmOrder2, x, x_stride, y, b, slots, dim);
  ForType(x.type,
          [&]<typename T>() { FmOrder2ForwardOf(As<T>(x), x_stride, As<T>(y), b, slots, dim); });
}

void FmOrder2Backward(ConstValues x, size_t x_stride, ConstValues dy, Write write, Values dx,
                      size_t b, size_t slots, size_t dim, Stream& stream) {
  CISTERN_RUN_ON_GPU(FmOrder2Backward, x, x_stride, dy, write, dx, b, slots, dim);
  ForType(x.type, [&]<typename T>() {
    FmOrder2BackwardOf(As<T>(x), x_stride, As<T>(dy), write, As<T>(dx), b, slots, dim);
  });
}

}  // namespace cistern::op
