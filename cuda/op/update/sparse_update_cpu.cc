#include "cuda/op/update/sparse_update.h"

#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/vector_cpu.h"

namespace cistern::op {

namespace gpu {  // sparse_update.cu
decltype(op::SparseUpdate) SparseUpdate;
decltype(op::AddRowL2) AddRowL2;
}  // namespace gpu

namespace {

constexpr size_t kSparseRowGrain = 128;  // rows per piece
constexpr size_t kRowsAhead = 8;         // prefetch distance in rows

inline void PrefetchCells(const float* cells, size_t count) {
  constexpr size_t kLineFloats = 16;
  for (size_t c = 0; c < count; c += kLineFloats) __builtin_prefetch(cells + c, 1);
}

}  // namespace

void SparseUpdate(const RuleParams& rule, float step_size, const uint32_t* rows, float* grads,
                  float* weights, float* states, size_t stride, size_t distinct, size_t dim,
                  const GradientScaler* scaler, Stream& stream) {
  CISTERN_RUN_ON_GPU(SparseUpdate, rule, step_size, rows, grads, weights, states, stride, distinct,
                     dim, scaler);
  if (!UpdatesAllowed(scaler)) return;
  const float factor = FactorOf(scaler);
  const auto n = static_cast<uint32_t>(dim);
  const size_t state_floats = RuleStateFloats(rule.kind, n);
  ForPieces(distinct, kSparseRowGrain, 4 * distinct * dim, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      if (i + kRowsAhead < end) {
        const size_t next = rows[i + kRowsAhead] * stride;
        PrefetchCells(weights + next, dim);
        if (state_floats > 0) PrefetchCells(states + next, state_floats);
      }
      const size_t at = rows[i] * stride;
      float* state = state_floats > 0 ? states + at : nullptr;
      ScaleBy(factor, grads + i * dim, dim);
      ApplyRule(rule, step_size, n, grads + i * dim, weights + at, state);
    }
  });
}

void AddRowL2(DeviceFactor l2, const uint32_t* rows, const float* weights, size_t stride,
              float* grads, double* square_sum, size_t distinct, size_t dim, float* scratch,
              Stream& stream) {
  CISTERN_RUN_ON_GPU(AddRowL2, l2, rows, weights, stride, grads, square_sum, distinct, dim,
                     scratch);
  double* partial = reinterpret_cast<double*>(scratch);
  const float factor = l2.product();
  ForPieces(distinct, kSparseRowGrain, 2 * distinct * dim, [=](size_t begin, size_t end) {
    double sum = 0;
    for (size_t i = begin; i < end; ++i) {
      const float* w = weights + rows[i] * stride;
      float* grad = grads + i * dim;
      float squares = 0.0f;
#pragma omp simd reduction(+ : squares)
      for (size_t e = 0; e < dim; ++e) {
        grad[e] += factor * w[e];
        squares += w[e] * w[e];
      }
      sum += squares;
    }
    partial[begin / kSparseRowGrain] = sum;
  });
  if (square_sum == nullptr) return;
  *square_sum = 0;
  for (size_t k = 0; k < CeilDiv(distinct, kSparseRowGrain); ++k) *square_sum += partial[k];
}

size_t AddRowL2ScratchFloats(size_t distinct) {
  return 2 * CeilDiv(distinct, kSparseRowGrain);
}

}  // namespace cistern::op
