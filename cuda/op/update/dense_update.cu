// Memory traffic per weight: DenseUpdate 12 bytes + 8 per float of optimizer state (Adam 28); the
// regularizers 12. Up to about 15 FLOPs.
#include "cuda/op/update/dense_update.h"

#include "common/base/check.h"
#include "cuda/op/primitive/map_packs.cuh"

namespace cistern::op::gpu {
namespace {

// A thread updates a pack of kWidth weights. It gathers each weight's states into one array, as
// ApplyRule requires.
template <unsigned kWidth>
__global__ void __launch_bounds__(kBlockThreads)
    DenseUpdateKernel(RuleParams rule, float step_size, unsigned fields, const float* grads,
                      float* weights, float* states, size_t count, const GradientScaler* scaler) {
  using Floats = Pack<float, kWidth>;
  const size_t i = (size_t{blockIdx.x} * kBlockThreads + threadIdx.x) * kWidth;
  if (i >= count || !UpdatesAllowed(scaler)) return;
  const Floats g = Floats::Load(grads + i);
  Floats w = Floats::Load(weights + i), s[kMaxStateFields] = {};
#pragma unroll
  for (unsigned f = 0; f < kMaxStateFields; ++f) {
    if (f < fields) s[f] = Floats::Load(states + f * count + i);
  }
  const float factor = FactorOf(scaler);
#pragma unroll
  for (unsigned v = 0; v < kWidth; ++v) {
    float grad = Rescaled(g[v], factor), weight = w[v];
    float state[kMaxStateFields] = {s[0][v], s[1][v]};
    ApplyRule(rule, step_size, 1, &grad, &weight, state);
    w.Set(v, weight);
#pragma unroll
    for (unsigned f = 0; f < kMaxStateFields; ++f) s[f].Set(v, state[f]);
  }
  w.Store(weights + i);
#pragma unroll
  for (unsigned f = 0; f < kMaxStateFields; ++f) {
    if (f < fields) s[f].Store(states + f * count + i);
  }
}

}  // namespace

void DenseUpdate(const RuleParams& rule, float step_size, float* grad, float* weight, float* state,
                 size_t count, const GradientScaler* scaler, Stream& stream) {
  CISTERN_CHECK(!SharesState(rule.kind));
  const unsigned fields = RuleStateFloats(rule.kind, 1);
  CISTERN_CHECK(fields <= kMaxStateFields);
  const bool wide =
      count % 4 == 0 && HoldsPacks(grad, 16) && HoldsPacks(weight, 16) && HoldsPacks(state, 16);
  Launch("DenseUpdate", wide ? DenseUpdateKernel<4> : DenseUpdateKernel<1>,
         dim3(static_cast<unsigned>(CeilDivide(count, kBlockThreads * (wide ? 4 : 1)))),
         dim3(kBlockThreads), 0, stream, rule, step_size, fields, grad, weight, state, count,
         scaler);
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
