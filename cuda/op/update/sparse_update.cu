// Memory traffic per row: SparseUpdate 4 + 12 dim bytes + 8 per float of optimizer state (Adam:
// 4 + 28 dim); AddRowL2 4 + 12 dim. Row accesses are random: a row of less than 32 bytes costs 32.
// Up to about 15 FLOPs per weight.
#include "cuda/op/update/sparse_update.h"

#include "common/base/check.h"
#include "cuda/op/primitive/pack.cuh"
#include "cuda/op/update/row_l2.cuh"
#include "cuda/op/update/shared_state.cuh"

namespace cistern::op::gpu {
namespace {

// Rows per thread, whose loads are in flight together.
template <unsigned kWidth>
constexpr unsigned kRowsPerThread = kWidth == 1 ? 4 : 2;

// threadIdx.x runs over packs of kWidth weights of a row, threadIdx.y over rows. Weights are
// independent: ApplyRule gets one weight with its states in one array.
template <unsigned kWidth>
__global__ void __launch_bounds__(kBlockThreads, 4)
    SparseUpdateKernel(RuleParams rule, float step_size, unsigned fields, const uint32_t* rows,
                       const float* grads, float* weights, float* states, size_t stride,
                       size_t distinct, size_t dim, const GradientScaler* scaler) {
  if (!UpdatesAllowed(scaler)) return;
  using Floats = Pack<float, kWidth>;
  constexpr unsigned kRows = kRowsPerThread<kWidth>;
  const float factor = FactorOf(scaler);
  const size_t first = size_t{blockIdx.x} * kRows * blockDim.y + threadIdx.y;
  for (size_t e = threadIdx.x * kWidth; e < dim; e += blockDim.x * kWidth) {
    size_t at[kRows];
    Floats g[kRows], w[kRows], s[kRows][kMaxStateFields] = {};
#pragma unroll
    for (unsigned k = 0; k < kRows; ++k) {
      const size_t i = first + k * blockDim.y;
      at[k] = i < distinct ? rows[i] * stride + e : 0;
    }
#pragma unroll
    for (unsigned k = 0; k < kRows; ++k) {
      const size_t i = first + k * blockDim.y;
      if (i >= distinct) continue;
      g[k] = Floats::Load(grads + i * dim + e);
      w[k] = Floats::Load(weights + at[k]);
#pragma unroll
      for (unsigned f = 0; f < kMaxStateFields; ++f) {
        if (f < fields) s[k][f] = Floats::Load(states + at[k] + f * dim);
      }
    }
#pragma unroll
    for (unsigned k = 0; k < kRows; ++k) {
      if (first + k * blockDim.y >= distinct) continue;
#pragma unroll
      for (unsigned v = 0; v < kWidth; ++v) {
        float grad = Rescaled(g[k][v], factor), weight = w[k][v];
        float state[kMaxStateFields] = {s[k][0][v], s[k][1][v]};
        ApplyRule(rule, step_size, 1, &grad, &weight, state);
        w[k].Set(v, weight);
#pragma unroll
        for (unsigned f = 0; f < kMaxStateFields; ++f) s[k][f].Set(v, state[f]);
      }
      w[k].Store(weights + at[k]);
#pragma unroll
      for (unsigned f = 0; f < kMaxStateFields; ++f) {
        if (f < fields) s[k][f].Store(states + at[k] + f * dim);
      }
    }
  }
}

template <unsigned kWidth>
void LaunchUpdate(const RuleParams& rule, float step_size, unsigned fields, const uint32_t* rows,
                  const float* grads, float* weights, float* states, size_t stride, size_t distinct,
                  size_t dim, const GradientScaler* scaler, Stream& stream) {
  const dim3 block = RowBlock(dim / kWidth);
  const auto blocks = static_cast<unsigned>(CeilDivide(distinct, kRowsPerThread<kWidth> * block.y));
  Launch("SparseUpdate", SparseUpdateKernel<kWidth>, dim3(blocks), block, 0, stream, rule,
         step_size, fields, rows, grads, weights, states, stride, distinct, dim, scaler);
}

// `lanes` threads, a power of two, per row. No thread returns early: shuffles need them all.
__global__ void __launch_bounds__(kBlockThreads)
    UpdateSharedKernel(RuleParams rule, float step_size, const uint32_t* rows, const float* grads,
                       float* weights, float* states, size_t stride, size_t distinct, uint32_t dim,
                       unsigned lanes, const GradientScaler* scaler) {
  if (!UpdatesAllowed(scaler)) return;  // in all threads, or in none
  const size_t i = size_t{blockIdx.x} * (kBlockThreads / lanes) + threadIdx.x / lanes;
  const bool active = i < distinct;
  const size_t at = active ? rows[i] * stride : 0;
  StepSharedState(rule, step_size, FactorOf(scaler), 1.0f, dim, grads + i * dim, weights + at,
                  states + at, threadIdx.x % lanes, lanes, active);
}

// One thread updates a whole row: for other rules whose weights share their state.
__global__ void __launch_bounds__(kBlockThreads, 5)
    UpdateRowKernel(RuleParams rule, float step_size, const uint32_t* rows, float* grads,
                    float* weights, float* states, size_t stride, size_t distinct, uint32_t dim,
                    const GradientScaler* scaler) {
  const size_t i = size_t{blockIdx.x} * kBlockThreads + threadIdx.x;
  if (i >= distinct || !UpdatesAllowed(scaler)) return;
  const size_t at = rows[i] * stride;
  const float factor = FactorOf(scaler);
  float* grad = grads + i * dim;
  for (uint32_t e = 0; e < dim && factor != 1.0f; ++e) grad[e] *= factor;
  ApplyRule(rule, step_size, dim, grad, weights + at, states + at);
}

// The place of weight c in a row whose weights come first.
struct FromFirst {
  __device__ unsigned operator()(unsigned c) const { return c; }
};

}  // namespace

void SparseUpdate(const RuleParams& rule, float step_size, const uint32_t* rows, float* grads,
                  float* weights, float* states, size_t stride, size_t distinct, size_t dim,
                  const GradientScaler* scaler, Stream& stream) {
  if (StepsByLanes(rule.kind) && dim > 0) {
    const unsigned lanes = PowerOfTwo(dim, kWarp);
    const auto blocks = static_cast<unsigned>(CeilDivide(distinct, kBlockThreads / lanes));
    return Launch("SparseUpdate", UpdateSharedKernel, dim3(blocks), dim3(kBlockThreads), 0, stream,
                  rule, step_size, rows, grads, weights, states, stride, distinct,
                  static_cast<uint32_t>(dim), lanes, scaler);
  }
  if (SharesState(rule.kind)) {
    const auto blocks = static_cast<unsigned>(CeilDivide(distinct, kBlockThreads));
    return Launch("SparseUpdate", UpdateRowKernel, dim3(blocks), dim3(kBlockThreads), 0, stream,
                  rule, step_size, rows, grads, weights, states, stride, distinct,
                  static_cast<uint32_t>(dim), scaler);
  }
  const unsigned fields = RuleStateFloats(rule.kind, 1);
  CISTERN_CHECK(fields <= kMaxStateFields);
  const bool wide = dim % 4 == 0 && stride % 4 == 0 && HoldsPacks(grads, 16) &&
                    HoldsPacks(weights, 16) && HoldsPacks(states, 16);
  const auto launch = wide ? LaunchUpdate<4> : LaunchUpdate<1>;
  launch(rule, step_size, fields, rows, grads, weights, states, stride, distinct, dim, scaler,
         stream);
}

void AddRowL2(DeviceFactor l2, const uint32_t* rows, const float* weights, size_t stride,
              float* grads, double* square_sum, size_t distinct, size_t dim, float* scratch,
              Stream& stream) {
  const bool wide =
      dim % 4 == 0 && stride % 4 == 0 && HoldsPacks(grads, 16) && HoldsPacks(weights, 16);
  const auto add = wide ? AddL2OfRows<4, FromFirst> : AddL2OfRows<1, FromFirst>;
  add("AddRowL2", l2, rows, weights, stride, grads, scratch, square_sum, distinct, dim, stream,
      FromFirst());
}

}  // namespace cistern::op::gpu
