#include "cuda/op/multiply.h"

#include "cuda/op/cpu.h"

namespace cistern::op {

namespace gpu {  // multiply.cu
decltype(op::Multiply) Multiply;
decltype(op::MultiplyBackward) MultiplyBackward;
}  // namespace gpu

void Multiply(const float* x, const float* weight, float* y, size_t b, size_t slots, size_t dim,
              Stream& stream) {
  CISTERN_RUN_ON_GPU(Multiply, x, weight, y, b, slots, dim);
  ForPieces(b, RowGrain(slots * dim), b * slots * dim, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      for (size_t s = 0; s < slots; ++s) {
        const float factor = x[i * slots + s];
        const float* w = weight + s * dim;
        float* out = y + (i * slots + s) * dim;
#pragma omp simd
        for (size_t e = 0; e < dim; ++e) out[e] = factor * w[e];
      }
    }
  });
}

void MultiplyBackward(const float* x, const float* weight, const float* dy, Write dx_write,
                      float* dx, float* dweight, size_t b, size_t slots, size_t dim, float* scratch,
                      Stream& stream) {
  CISTERN_RUN_ON_GPU(MultiplyBackward, x, weight, dy, dx_write, dx, dweight, b, slots, dim,
                     scratch);
  const size_t n = slots * dim;
  ForPieces(b, kRowsPerBlock, 2 * b * n, [=](size_t begin, size_t end) {
    float* partial = scratch + begin / kRowsPerBlock * n;
    std::fill_n(partial, n, 0.0f);
    for (size_t i = begin; i < end; ++i) {
      for (size_t s = 0; s < slots; ++s) {
        const float factor = x[i * slots + s];
        const float* g = dy + i * n + s * dim;
        const float* w = weight + s * dim;
        float* dw = partial + s * dim;
        float dot = 0.0f;
#pragma omp simd reduction(+ : dot)
        for (size_t e = 0; e < dim; ++e) {
          dw[e] += factor * g[e];
          dot += g[e] * w[e];
        }
        if (dx == nullptr) continue;
        float& out = dx[i * slots + s];
        out = dx_write == Write::kAccumulate ? out + dot : dot;
      }
    }
  });
  AddPartials(scratch, RowBlocks(b), n, dweight);
}

size_t MultiplyScratchFloats(size_t b, size_t slots, size_t dim) {
  return RowBlocks(b) * slots * dim;
}

}  // namespace cistern::op
