#include "cuda/op/elementwise.h"

#include "cuda/op/cpu.h"

namespace cistern::op {

namespace gpu {  // elementwise.cu
decltype(op::Fill) Fill;
decltype(op::Scale) Scale;
decltype(op::Accumulate) Accumulate;
decltype(op::Add) Add;
}  // namespace gpu

void Fill(float value, float* x, size_t count, Stream& stream) {
  CISTERN_RUN_ON_GPU(Fill, value, x, count);
  ForPieces(count, kElementGrain, count,
            [=](size_t begin, size_t end) { std::fill(x + begin, x + end, value); });
}

void Scale(float factor, float* x, size_t count, Stream& stream) {
  CISTERN_RUN_ON_GPU(Scale, factor, x, count);
  ForPieces(count, kElementGrain, count, [=](size_t begin, size_t end) {
#pragma omp simd
    for (size_t i = begin; i < end; ++i) x[i] *= factor;
  });
}

void Accumulate(const float* x, float* y, size_t count, Stream& stream) {
  CISTERN_RUN_ON_GPU(Accumulate, x, y, count);
  ForPieces(count, kElementGrain, 2 * count, [=](size_t begin, size_t end) {
#pragma omp simd
    for (size_t i = begin; i < end; ++i) y[i] += x[i];
  });
}

void Add(const float* a, const float* b, float* y, size_t count, Stream& stream) {
  CISTERN_RUN_ON_GPU(Add, a, b, y, count);
  ForPieces(count, kElementGrain, 3 * count, [=](size_t begin, size_t end) {
#pragma omp simd
    for (size_t i = begin; i < end; ++i) y[i] = a[i] + b[i];
  });
}

}  // namespace cistern::op
