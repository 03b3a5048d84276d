#include "cuda/op/primitive/cpu.h"
#include "cuda/op/update/deferred_updates.h"

namespace cistern::op {

namespace gpu {  // deferred_updates.cu
decltype(op::ApplyDeferredUpdates) ApplyDeferredUpdates;
}  // namespace gpu

namespace {

// Rows per piece: few, because a row that was untouched for long costs two hundred steps.
constexpr size_t kDeferredRowGrain = 32;

}  // namespace

void ApplyDeferredUpdates(const RuleParams& rule, const float* step_sizes, uint64_t fading_steps,
                          uint64_t to, uint64_t mark, const uint32_t* rows, float* weights,
                          float* states, size_t stride, size_t count, size_t dim, Stream& stream) {
  CISTERN_RUN_ON_GPU(ApplyDeferredUpdates, rule, step_sizes, fading_steps, to, mark, rows, weights,
                     states, stride, count, dim);
  const auto n = static_cast<uint32_t>(dim);
  if (n == 0) return;
  ForPieces(count, kDeferredRowGrain, 8 * count * dim, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const size_t at = (rows == nullptr ? i : rows[i]) * stride;
      ApplyDeferredUpdatesToRow(rule, step_sizes, fading_steps, to, mark, n, weights + at,
                                states + at);
    }
  });
}

}  // namespace cistern::op
