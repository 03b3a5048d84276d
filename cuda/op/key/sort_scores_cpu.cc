#include "cuda/op/key/sort_scores.h"

#include <algorithm>

#include "cuda/op/primitive/cpu.h"

namespace cistern::op {
namespace gpu {

decltype(op::SortScores) SortScores;
decltype(op::SortScoresScratchBytes) SortScoresScratchBytes;

}  // namespace gpu

void SortScores(float* x, size_t count, void* scratch, Stream& stream) {
  CISTERN_RUN_ON_GPU(SortScores, x, count, scratch);
  std::sort(x, x + count);
}

size_t SortScoresScratchBytes(size_t count, Stream& stream) {
  if constexpr (kHasGpuBuilds) {
    if (stream.queue() != nullptr) return gpu::SortScoresScratchBytes(count, stream);
  }
  return 0;
}

}  // namespace cistern::op
