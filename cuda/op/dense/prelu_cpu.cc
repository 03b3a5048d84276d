#include "cuda/op/dense/prelu.h"

#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/element.h"

namespace cistern::op {

namespace gpu {  // prelu.cu
decltype(op::Prelu) Prelu;
decltype(op::PreluBackward) PreluBackward;
}  // namespace gpu

namespace {

template <typename T>
void PreluOf(const T* x, const float* slope, T* y, size_t b, size_t n) {
  ForPieces(b, RowGrain(n), b * n, [=](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
#pragma omp simd
      for (size_t c = 0; c < n; ++c) {
        const float in = x[r * n + c];
        y[r * n + c] = in > 0.0f ? in : slope[c] * in;
      }
    }
  });
}

template <typename T>
void PreluBackwardOf(const T* x, const float* slope, const T* dy, Write dx_write, T* dx,
                     float* dslope, size_t b, size_t n, float* scratch) {
  ForPieces(b, kRowsPerBlock, 2 * b * n, [=](size_t begin, size_t end) {
    float* partial = scratch + begin / kRowsPerBlock * n;
    std::fill_n(partial, n, 0.0f);
    for (size_t i = begin * n; i < end * n; i += n) {
      for (size_t c = 0; c < n; ++c) {
        const float in = x[i + c], g = dy[i + c];
        partial[c] += in > 0.0f ? 0.0f : in * g;
        if (dx == nullptr) continue;
        const float grad = in > 0.0f ? g : slope[c] * g;
        dx[i + c] = dx_write == Write::kAccumulate ? dx[i + c] + grad : grad;
      }
    }
  });
  AddPartials(scratch, RowBlocks(b), n, dslope);
}

}  // namespace

void Prelu(ConstValues x, const float* slope, Values y, size_t b, size_t n, Stream& stream) {
  CISTERN_RUN_ON_GPU(Prelu, x, slope, y, b, n);
  ForType(x.type, [&]<typename T>() { PreluOf(As<T>(x), slope, As<T>(y), b, n); });
}

void PreluBackward(ConstValues x, const float* slope, ConstValues dy, Write dx_write, Values dx,
                   float* dslope, size_t b, size_t n, float* scratch, Stream& stream) {
  CISTERN_RUN_ON_GPU(PreluBackward, x, slope, dy, dx_write, dx, dslope, b, n, scratch);
  ForType(x.type, [&]<typename T>() {
    PreluBackwardOf(As<T>(x), slope, As<T>(dy), dx_write, As<T>(dx), dslope, b, n, scratch);
  });
}

size_t PreluScratchFloats(size_t b, size_t n) {
  return RowBlocks(b) * n;
}

}  // namespace cistern::op
