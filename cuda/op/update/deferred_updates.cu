// Memory traffic per row with deferred updates: 8 + 8 dim bytes + 8 per float of optimizer state
// (Adam: 8 + 24 dim). About 8 FLOPs per weight and deferred step with Adam, at most 199 steps with
// the usual constants: rows that were untouched for long are compute-bound.
#include "cuda/op/update/deferred_updates.h"

#include "common/base/check.h"
#include "cuda/op/primitive/map.cuh"

namespace cistern::op::gpu {
namespace {

// threadIdx.x runs over the weights of a row, threadIdx.y over rows. Weights are independent. All
// threads of a row read its last step, so a separate kernel, MarkKernel, changes it.
__global__ void __launch_bounds__(kBlockThreads)
    DeferredUpdatesKernel(RuleParams rule, const float* step_sizes, uint64_t fading_steps,
                          uint64_t to, unsigned fields, const uint32_t* rows, float* weights,
                          float* states, size_t stride, size_t count, size_t dim) {
  const size_t i = size_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (i >= count) return;
  const size_t at = (rows == nullptr ? i : rows[i]) * stride;
  const auto last = static_cast<uint64_t>(states[at + fields * dim]);
  if (last >= to) return;
  for (size_t e = threadIdx.x; e < dim; e += blockDim.x) {
    float s[kMaxStateFields] = {};
#pragma unroll
    for (unsigned f = 0; f < kMaxStateFields; ++f) {
      if (f < fields) s[f] = states[at + f * dim + e];
    }
    cistern::ApplyDeferredUpdates(rule, step_sizes, fading_steps, last, to, 1, weights + at + e, s);
#pragma unroll
    for (unsigned f = 0; f < kMaxStateFields; ++f) {
      if (f < fields) states[at + f * dim + e] = s[f];
    }
  }
}

__global__ void __launch_bounds__(kBlockThreads)
    MarkKernel(float mark, const uint32_t* rows, float* cells, size_t stride, size_t count) {
  const size_t i = size_t{blockIdx.x} * kBlockThreads + threadIdx.x;
  if (i < count) cells[(rows == nullptr ? i : rows[i]) * stride] = mark;
}

}  // namespace

void ApplyDeferredUpdates(const RuleParams& rule, const float* step_sizes, uint64_t fading_steps,
                          uint64_t to, uint64_t mark, const uint32_t* rows, float* weights,
                          float* states, size_t stride, size_t count, size_t dim, Stream& stream) {
  if (dim == 0) return;
  const unsigned fields = RuleStateFloats(rule.kind, 1);
  CISTERN_CHECK(fields <= kMaxStateFields);
  const dim3 block = RowBlock(dim);
  Launch("ApplyDeferredUpdates", DeferredUpdatesKernel,
         dim3(static_cast<unsigned>(CeilDivide(count, block.y))), block, 0, stream, rule,
         step_sizes, fading_steps, to, fields, rows, weights, states, stride, count, dim);
  Launch("ApplyDeferredUpdates", MarkKernel,
         dim3(static_cast<unsigned>(CeilDivide(count, kBlockThreads))), dim3(kBlockThreads), 0,
         stream, static_cast<float>(mark), rows, states + fields * dim, stride, count);
}

}  // namespace cistern::op::gpu
