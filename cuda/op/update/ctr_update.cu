// Memory traffic per row: CtrUpdate 4 bytes (row) + 8 (segment) + 4 + 4 dim (gradient) + 64 + 8 dim
// and 8 per float of optimizer state (value) + 2 (has_embedx), and 8 per occurrence (its output and
// the label). AddCtrL2 4 + 12 (dim + 1). DropAbsentEmbedx 5 + 8 dim. Row accesses are random.
#include "cuda/op/update/ctr_update.h"

#include "common/base/check.h"
#include "cuda/op/update/row_l2.cuh"
#include "cuda/op/update/shared_state.cuh"

namespace cistern::op::gpu {
namespace {

constexpr uint32_t kLongCtrSegment = 256;  // the block counts longer segments

__device__ inline unsigned IsClick(const CtrOccurrences& in, uint32_t k) {
  return in.labels[in.segment_outputs[k] / in.slots * in.label_stride] > 0.0f ? 1u : 0u;
}

// Updates weights lane, lane + lanes ... of an embedx.
__device__ inline void StepEmbedxByLanes(const CtrRule& rule, float step_size, float factor,
                                         float scale, const float* grad, float* value,
                                         unsigned lane, unsigned lanes, bool active) {
  float* weights = value + rule.embedx_w;
  float* states = value + rule.embedx_state;
  if (SharesState(rule.rule.kind)) {  // in all threads, or in none
    return StepSharedState(rule.rule, step_size, factor, scale, rule.dim, grad, weights, states,
                           lane, lanes, active);
  }
  const unsigned fields = RuleStateFloats(rule.rule.kind, 1);
  for (uint32_t e = lane; active && e < rule.dim; e += lanes) {
    const float g = Rescaled(grad[e], factor) * scale;
    float s[kMaxStateFields] = {};
#pragma unroll
    for (unsigned f = 0; f < kMaxStateFields; ++f) {
      if (f < fields) s[f] = states[f * rule.dim + e];
    }
    ApplyRule(rule.rule, step_size, 1, &g, weights + e, s);
#pragma unroll
    for (unsigned f = 0; f < kMaxStateFields; ++f) {
      if (f < fields) states[f * rule.dim + e] = s[f];
    }
  }
}

// `lanes` threads, a power of two, per row; the first reads and writes the row's statistics and
// broadcasts them with GroupSum. Neighbouring rows, which often have long segments
// together, go to different blocks. No thread returns early: barriers and shuffles need them all.
__global__ void __launch_bounds__(kBlockThreads)
    CtrUpdateKernel(CtrRule rule, FirstWeights first, float step_size, uint32_t day,
                    CtrOccurrences in, const Key* keys, const float* grads, float* values,
                    size_t stride, uint8_t* has_embedx, unsigned lanes,
                    const GradientScaler* scaler) {
  if (!UpdatesAllowed(scaler)) return;  // all threads, before any barrier
  const float factor = FactorOf(scaler);
  __shared__ unsigned long_groups[kBlockThreads], clicks_of[kBlockThreads], long_num;
  const unsigned lane = threadIdx.x % lanes, group = threadIdx.x / lanes;
  const size_t i = size_t{group} * gridDim.x + blockIdx.x;
  const bool active = i < in.distinct;
  const uint32_t begin = active ? in.segment_offsets[i] : 0;
  const uint32_t end = active ? in.segment_offsets[i + 1] : 0;
  const bool is_long = end - begin > kLongCtrSegment;

  if (threadIdx.x == 0) long_num = 0;
  __syncthreads();
  // The order in which long segments are found does not affect the counts.
  if (is_long && lane == 0) long_groups[atomicAdd(&long_num, 1u)] = group;
  __syncthreads();
  for (unsigned f = 0; f < long_num; ++f) {
    const size_t of = size_t{long_groups[f]} * gridDim.x + blockIdx.x;
    unsigned count = 0;
#pragma unroll 4
    for (uint32_t k = in.segment_offsets[of] + threadIdx.x; k < in.segment_offsets[of + 1];
         k += kBlockThreads) {
      count += IsClick(in, k);
    }
    count = BlockSum(count);
    if (threadIdx.x == 0) clicks_of[long_groups[f]] = count;
  }
  __syncthreads();
  unsigned clicks = 0;
  for (uint32_t k = begin + lane; k < end && !is_long; k += lanes) clicks += IsClick(in, k);
  clicks = GroupSum(clicks, lanes);
  if (is_long) clicks = clicks_of[group];

  const uint32_t row = active ? in.rows[i] : 0;
  float* value = values + row * stride;
  const float* grad = grads + i * (rule.dim + 1);
  CtrPush push;
  push.show = static_cast<float>(end - begin);
  unsigned state = 0;  // bit 0: embedx exists; bit 1: it did before
  if (active && lane == 0) {
    push.slot = static_cast<float>(in.segment_outputs[begin] % in.slots);
    push.click = static_cast<float>(clicks);
    push.day = day;
    const bool had_embedx = has_embedx[row] != 0;
    const bool exists = PushCtrStatistics(rule, push, had_embedx, value);
    const float embed_grad = Rescaled(grad[0], factor) * CtrGradientScale(rule, push);
    ApplyRule(rule.rule, step_size, 1, &embed_grad, value + rule.embed_w, value + rule.embed_state);
    has_embedx[row] = exists ? 1 : 0;
    state = (exists ? 1u : 0u) | (had_embedx ? 2u : 0u);
  }
  state = GroupSum(state, lanes);
  StepEmbedxByLanes(rule, step_size, factor, CtrGradientScale(rule, push), grad + 1, value, lane,
                    lanes, (state & 2) != 0);
  if (state == 1) CreateEmbedx(rule, first, keys[row], value, lane, lanes);
}

}  // namespace

void DropAbsentEmbedx(const uint8_t* has_embedx, const uint32_t* rows, float* grads,
                      size_t distinct, size_t dim, Stream& stream) {
  MapRows("DropAbsentEmbedx", distinct, dim, Write::kOverwrite, grads + 1, dim + 1, stream,
          [=] __device__(size_t r, size_t c) {
            return has_embedx[rows[r]] != 0 ? grads[r * (dim + 1) + 1 + c] : 0.0f;
          });
}

void AddCtrL2(DeviceFactor l2, const CtrRule& rule, const uint32_t* rows, const float* values,
              size_t stride, float* grads, double* square_sum, size_t distinct, float* scratch,
              Stream& stream) {
  const uint32_t embed_w = rule.embed_w, embedx_w = rule.embedx_w;
  AddL2OfRows<1>("AddCtrL2", l2, rows, values, stride, grads, scratch, square_sum, distinct,
                 rule.dim + 1, stream,
                 [=] __device__(unsigned c) { return c == 0 ? embed_w : embedx_w + c - 1; });
}

void CtrUpdate(const CtrRule& rule, const FirstWeights& first, float step_size, uint32_t day,
               const CtrOccurrences& in, const Key* keys, float* grads, float* values,
               size_t stride, uint8_t* has_embedx, const GradientScaler* scaler, Stream& stream) {
  CISTERN_CHECK(RuleStateFloats(rule.rule.kind, 1) <= kMaxStateFields);
  CISTERN_CHECK(!SharesState(rule.rule.kind) || StepsByLanes(rule.rule.kind));
  const unsigned lanes = PowerOfTwo(rule.dim, kWarp);
  const auto blocks = static_cast<unsigned>(CeilDivide(in.distinct, kBlockThreads / lanes));
  Launch("CtrUpdate", CtrUpdateKernel, dim3(blocks), dim3(kBlockThreads), 0, stream, rule, first,
         step_size, day, in, keys, grads, values, stride, has_embedx, lanes, scaler);
}

}  // namespace cistern::op::gpu
