#include "cuda/op/dense/bias_gradient.h"

#include "cuda/op/dense/dropout_element.h"
#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/element.h"

namespace cistern::op {

namespace gpu {  // bias_gradient.cu
decltype(op::BiasGradient) BiasGradient;
}  // namespace gpu

namespace {

template <typename T>
void SweepOf(const T* y, T* dy, size_t b, size_t n, float* partial) {
  ForPieces(b, kRowsPerBlock, 2 * b * n, [=](size_t begin, size_t end) {
    float* sum = partial + begin / kRowsPerBlock * n;
    std::fill_n(sum, n, 0.0f);
    for (size_t r = begin; r < end; ++r) {
      T* row = dy + r * n;
      if (y != nullptr) {
        const T* out = y + r * n;
#pragma omp simd
        for (size_t c = 0; c < n; ++c) row[c] = BehindRelu(out[c], row[c], 1.0f);
      }
#pragma omp simd
      for (size_t c = 0; c < n; ++c) sum[c] += row[c];
    }
  });
}

}  // namespace

void BiasGradient(ConstValues y, Values dy, float* dbias, size_t b, size_t n, float* scratch,
                  Stream& stream) {
  CISTERN_RUN_ON_GPU(BiasGradient, y, dy, dbias, b, n, scratch);
  ForType(dy.type, [&]<typename T>() { SweepOf(As<T>(y), As<T>(dy), b, n, scratch); });
  AddPartials(scratch, RowBlocks(b), n, dbias);
}

size_t BiasGradientScratchFloats(size_t b, size_t n) {
  return RowBlocks(b) * n;
}

}  // namespace cistern::op
