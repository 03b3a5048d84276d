#include "cuda/op/dense/multiply.h"

#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/element.h"

namespace cistern::op {

namespace gpu {  // multiply.cu
decltype(op::Multiply) Multiply;
decltype(op::MultiplyBackward) MultiplyBackward;
}  // namespace gpu

namespace {

template <typename T>
void MultiplyForwardOf(const T* x, const float* weight, T* y, size_t b, size_t slots, size_t dim) {
  ForPieces(b, RowGrain(slots * dim), b * slots * dim, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      for (size_t s = 0; s < slots; ++s) {
        const float factor = x[i * slots + s];
        const float* w = weight + s * dim;
        T* out = y + (i * slots + s) * dim;
#pragma omp simd
        for (size_t e = 0; e < dim; ++e) out[e] = factor * w[e];
      }
    }
  });
}

template <typename T>
void MultiplyBackwardOf(const T* x, const float* weight, const T* dy, Write dx_write, T* dx,
                        float* dweight, size_t b, size_t slots, size_t dim, float* scratch) {
  const size_t n = slots * dim;
  ForPieces(b, kRowsPerBlock, 2 * b * n, [=](size_t begin, size_t end) {
    float* partial = scratch + begin / kRowsPerBlock * n;
    std::fill_n(partial, n, 0.0f);
    for (size_t i = begin; i < end; ++i) {
      for (size_t s = 0; s < slots; ++s) {
        const float factor = x[i * slots + s];
        const T* g = dy + i * n + s * dim;
        const float* w = weight + s * dim;
        float* dw = partial + s * dim;
        float dot = 0.0f;
#pragma omp simd reduction(+ : dot)
        for (size_t e = 0; e < dim; ++e) {
          dw[e] += factor * g[e];
          dot += g[e] * w[e];
        }
        if (dx == nullptr) continue;
        T& out = dx[i * slots + s];
        out = dx_write == Write::kAccumulate ? out + dot : dot;
      }
    }
  });
  AddPartials(scratch, RowBlocks(b), n, dweight);
}

}  // namespace

void Multiply(ConstValues x, const float* weight, Values y, size_t b, size_t slots, size_t dim,
              Stream& stream) {
  CISTERN_RUN_ON_GPU(Multiply, x, weight, y, b, slots, dim);
  ForType(x.type,
          [&]<typename T>() { MultiplyForwardOf(As<T>(x), weight, As<T>(y), b, slots, dim); });
}

void MultiplyBackward(ConstValues x, const float* weight, ConstValues dy, Write dx_write, Values dx,
                      float* dweight, size_t b, size_t slots, size_t dim, float* scratch,
                      Stream& stream) {
  CISTERN_RUN_ON_GPU(MultiplyBackward, x, weight, dy, dx_write, dx, dweight, b, slots, dim,
                     scratch);
  ForType(x.type, [&]<typename T>() {
    MultiplyBackwardOf(As<T>(x), weight, As<T>(dy), dx_write, As<T>(dx), dweight, b, slots, dim,
                       scratch);
  });
}

size_t MultiplyScratchFloats(size_t b, size_t slots, size_t dim) {
  return RowBlocks(b) * slots * dim;
}

}  // namespace cistern::op
