// Bytes that must move, a weight: DenseUpdate 12 + 8 for each field of state (Adam 28); the
// regularizers 12. Up to about 15 FLOPs.
#include "cuda/op/dense_update.h"

#include "common/check.h"
#include "cuda/op/map_packs.cuh"

namespace cistern::op::gpu {
namespace {

constexpr unsigned kMaxStateFields = 2;  // Adam: m and v

// A thread makes the step of one weight, with its fields of state side by side as ApplyRule wants.
__global__ void __launch_bounds__(kBlockThreads)
    UpdateKernel(RuleParams rule, float step_size, unsigned fields, const float* grad,
                 float* weight, float* state, size_t count, const StepGate* gate) {
  const size_t i = size_t{blockIdx.x} * kBlockThreads + threadIdx.x;
  if (i >= count || !IsOpen(gate)) return;
  const float g = Rescaled(grad[i], FactorOf(gate));
  float w = weight[i];
  float s[kMaxStateFields] = {};
#pragma unroll
  for (unsigned f = 0; f < kMaxStateFields; ++f) {
    if (f < fields) s[f] = state[f * count + i];
  }
  ApplyRule(rule, step_size, 1, &g, &w, s);
  weight[i] = w;
#pragma unroll
  for (unsigned f = 0; f < kMaxStateFields; ++f) {
    if (f < fields) state[f * count + i] = s[f];
  }
}

}  // namespace

void DenseUpdate(const RuleParams& rule, float step_size, float* grad, float* weight, float* state,
                 size_t count, const StepGate* gate, Stream& stream) {
  CISTERN_CHECK(rule.kind != RuleKind::kAdagradShared);
  const unsigned fields = RuleStateFloats(rule.kind, 1);
  CISTERN_CHECK(fields <= kMaxStateFields);
  Launch("DenseUpdate", UpdateKernel, dim3(static_cast<unsigned>(CeilDivide(count, kBlockThreads))),
         dim3(kBlockThreads), 0, stream, rule, step_size, fields, grad, weight, state, count, gate);
}

void AddL2Gradient(DeviceFactor lambda, const float* weight, float* grad, size_t count,
                   Stream& stream) {
  MapArrays(
      "AddL2Gradient", count, Write::kAccumulate, grad, stream,
      [=] __device__(float w) { return lambda.product() * w; }, ArrayOf<float>{weight});
}

void AddL1Gradient(DeviceFactor lambda, const float* weight, float* grad, size_t count,
                   Stream& stream) {
  MapArrays(
      "AddL1Gradient", count, Write::kAccumulate, grad, stream,
      [=] __device__(float w) {
        const float factor = lambda.product();
        return w > 0.0f ? factor : (w < 0.0f ? -factor : 0.0f);
      },
      ArrayOf<float>{weight});
}

}  // namespace cistern::op::gpu
