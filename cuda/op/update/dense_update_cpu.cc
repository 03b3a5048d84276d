#include "cuda/op/update/dense_update.h"

#include "common/base/check.h"
#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/vector_cpu.h"

namespace cistern::op {

namespace gpu {  // dense_update.cu
decltype(op::DenseUpdate) DenseUpdate;
decltype(op::AddL2Gradient) AddL2Gradient;
decltype(op::AddL1Gradient) AddL1Gradient;
}  // namespace gpu

namespace {

constexpr size_t kChunk = 256;  // weights whose state is gathered together

}  // namespace

void DenseUpdate(const RuleParams& rule, float step_size, float* grad, float* weight, float* state,
                 size_t count, const GradientScaler* scaler, Stream& stream) {
  CISTERN_RUN_ON_GPU(DenseUpdate, rule, step_size, grad, weight, state, count, scaler);
  if (!UpdatesAllowed(scaler)) return;
  const float factor = FactorOf(scaler);
  CISTERN_CHECK(!SharesState(rule.kind));
  const size_t fields = RuleStateFloats(rule.kind, 1);
  CISTERN_CHECK(fields <= kMaxStateFields);
  // ApplyRule requires the states of its weights in one array: a chunk of each state is copied to a
  // local array, which stays in the L1 cache, and back.
  ForPieces(count, kChunk, 4 * count, [=](size_t begin, size_t end) {
    float local[kMaxStateFields * kChunk];
    const size_t n = end - begin;
    for (size_t f = 0; f < fields; ++f) {
      std::copy_n(state + f * count + begin, n, local + f * n);
    }
    ScaleBy(factor, grad + begin, n);
    ApplyRule(rule, step_size, static_cast<uint32_t>(n), grad + begin, weight + begin, local);
    for (size_t f = 0; f < fields; ++f) {
      std::copy_n(local + f * n, n, state + f * count + begin);
    }
  });
}

void AddL2Gradient(DeviceFactor lambda, const float* weight, float* grad, size_t count,
                   Stream& stream) {
  CISTERN_RUN_ON_GPU(AddL2Gradient, lambda, weight, grad, count);
  const float factor = lambda.product();
  ForPieces(count, kElementGrain, 2 * count, [=](size_t begin, size_t end) {
#pragma omp simd
    for (size_t i = begin; i < end; ++i) grad[i] += factor * weight[i];
  });
}

void AddL1Gradient(DeviceFactor lambda, const float* weight, float* grad, size_t count,
                   Stream& stream) {
  CISTERN_RUN_ON_GPU(AddL1Gradient, lambda, weight, grad, count);
  const float factor = lambda.product();
  ForPieces(count, kElementGrain, 2 * count, [=](size_t begin, size_t end) {
#pragma omp simd
    for (size_t i = begin; i < end; ++i) {
      grad[i] += weight[i] > 0.0f ? factor : (weight[i] < 0.0f ? -factor : 0.0f);
    }
  });
}

}  // namespace cistern::op
