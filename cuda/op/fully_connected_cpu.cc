#include "cuda/op/fully_connected.h"

#include "cuda/op/cpu.h"
#include "cuda/op/gemm_cpu.h"
#include "cuda/op/vector_cpu.h"

namespace cistern::op {

namespace gpu {  // fully_connected.cu
decltype(op::FullyConnected) FullyConnected;
decltype(op::FullyConnectedBackward) FullyConnectedBackward;
}  // namespace gpu

namespace {

// The last layer of a model has one output: matrix libraries are slow there, and it is bound by
// memory.

void DotRows(const float* x, const float* weight, float bias, float* y, size_t b, size_t k) {
  ForPieces(b, RowGrain(k), b * k, [=](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) y[r] = Dot(x + r * k, weight, k) + bias;
  });
}

void OuterProduct(const float* dy, const float* weight, Write write, float* dx, size_t b,
                  size_t k) {
  ForPieces(b, RowGrain(k), 2 * b * k, [=](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      const float factor = dy[r];
      float* row = dx + r * k;
      if (write == Write::kOverwrite) {
#pragma omp simd
        for (size_t c = 0; c < k; ++c) row[c] = factor * weight[c];
      } else {
#pragma omp simd
        for (size_t c = 0; c < k; ++c) row[c] += factor * weight[c];
      }
    }
  });
}

// out(c) = sum over the rows of factor(r) * x(r, c); factor null: 1. scratch: [RowBlocks(b), n].
void WeightedColumnSums(const float* x, const float* factor, size_t b, size_t n, float* scratch,
                        float* out) {
  ForPieces(b, kRowsPerBlock, b * n, [=](size_t begin, size_t end) {
    float* sum = scratch + begin / kRowsPerBlock * n;
    std::fill_n(sum, n, 0.0f);
    for (size_t r = begin; r < end; ++r) {
      const float* row = x + r * n;
      const float weight = factor == nullptr ? 1.0f : factor[r];
#pragma omp simd
      for (size_t c = 0; c < n; ++c) sum[c] += weight * row[c];
    }
  });
  AddPartials(scratch, RowBlocks(b), n, out);
}

}  // namespace

void FullyConnected(const float* x, const float* weight, const float* bias, float* y, size_t b,
                    size_t k, size_t n, Stream& stream) {
  CISTERN_RUN_ON_GPU(FullyConnected, x, weight, bias, y, b, k, n);
  if (n == 1) return DotRows(x, weight, bias == nullptr ? 0.0f : bias[0], y, b, k);
  const Product product = {false, false, b, n, k, x, k, weight, n, false, y, n};
  MultiplyInBlocks(product, [bias](const Product& done, size_t first_column) {
    if (bias == nullptr) return;
    const float* add = bias + first_column;
    for (size_t r = 0; r < done.m; ++r) {
      float* row = done.c + r * done.ldc;
#pragma omp simd
      for (size_t c = 0; c < done.n; ++c) row[c] += add[c];
    }
  });
}

void FullyConnectedBackward(const float* x, const float* weight, const float* dy, Write dx_write,
                            float* dx, float* dweight, float* dbias, size_t b, size_t k, size_t n,
                            float* scratch, Stream& stream) {
  CISTERN_RUN_ON_GPU(FullyConnectedBackward, x, weight, dy, dx_write, dx, dweight, dbias, b, k, n,
                     scratch);
  if (dbias != nullptr) WeightedColumnSums(dy, nullptr, b, n, scratch, dbias);
  if (n == 1) {
    WeightedColumnSums(x, dy, b, k, scratch, dweight);
    if (dx != nullptr) OuterProduct(dy, weight, dx_write, dx, b, k);
    return;
  }
  Gemm(Transpose::kYes, Transpose::kNo, k, n, b, x, dy, Write::kOverwrite, dweight, stream);
  if (dx == nullptr) return;
  Gemm(Transpose::kNo, Transpose::kYes, b, k, n, dy, weight, dx_write, dx, stream);
}

size_t FullyConnectedScratchFloats(size_t b, size_t k, size_t n) {
  return RowBlocks(b) * (n == 1 ? std::max<size_t>(k, 1) : n);
}

}  // namespace cistern::op
