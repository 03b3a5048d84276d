#include "cuda/op/elementwise.h"

#include "cuda/op/cpu.h"

namespace cistern::op {

void Fill(float value, float* x, size_t count, Stream& stream) {
  if (!OnCpu(stream)) return;
  ForPieces(count, kElementGrain, count,
            [=](size_t begin, size_t end) { std::fill(x + begin, x + end, value); });
}

void Scale(float factor, float* x, size_t count, Stream& stream) {
  if (!OnCpu(stream)) return;
  ForPieces(count, kElementGrain, count, [=](size_t begin, size_t end) {
#pragma omp simd
    for (size_t i = begin; i < end; ++i) x[i] *= factor;
  });
}

void Accumulate(const float* x, float* y, size_t count, Stream& stream) {
  if (!OnCpu(stream)) return;
  ForPieces(count, kElementGrain, 2 * count, [=](size_t begin, size_t end) {
#pragma omp simd
    for (size_t i = begin; i < end; ++i) y[i] += x[i];
  });
}

void Add(const float* a, const float* b, float* y, size_t count, Stream& stream) {
  if (!OnCpu(stream)) return;
  ForPieces(count, kElementGrain, 3 * count, [=](size_t begin, size_t end) {
#pragma omp simd
    for (size_t i = begin; i < end; ++i) y[i] = a[i] + b[i];
  });
}

}  // namespace cistern::op
