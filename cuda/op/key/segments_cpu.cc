#include "cuda/op/key/segments.h"

#include <algorithm>

#include "cuda/op/primitive/cpu.h"

namespace cistern::op {

namespace gpu {  // segments.cu
decltype(op::MakeSegments) MakeSegments;
decltype(op::MakeSegmentsScratchBytes) MakeSegmentsScratchBytes;
}  // namespace gpu

void MakeSegments(const uint32_t* offsets, const Row* rows, size_t outputs, size_t occurrences,
                  Row* segment_rows, uint32_t* segment_offsets, uint32_t* segment_outputs,
                  uint32_t* distinct, void* scratch, Stream& stream) {
  CISTERN_RUN_ON_GPU(MakeSegments, offsets, rows, outputs, occurrences, segment_rows,
                     segment_offsets, segment_outputs, distinct, scratch);
  auto* sorted = static_cast<uint64_t*>(scratch);  // row << 32 | output
  for (size_t output = 0; output < outputs; ++output) {
    for (uint32_t k = offsets[output]; k < offsets[output + 1]; ++k) {
      sorted[k] = uint64_t{rows[k]} << 32 | output;
    }
  }
  std::sort(sorted, sorted + occurrences);
  uint32_t segments = 0;
  for (size_t k = 0; k < occurrences; ++k) {
    const Row row = static_cast<Row>(sorted[k] >> 32);
    if (k == 0 || row != segment_rows[segments - 1]) {
      segment_rows[segments] = row;
      segment_offsets[segments++] = static_cast<uint32_t>(k);
    }
    segment_outputs[k] = static_cast<uint32_t>(sorted[k]);
  }
  segment_offsets[segments] = static_cast<uint32_t>(occurrences);
  *distinct = segments;
}

size_t MakeSegmentsScratchBytes(size_t occurrences, Stream& stream) {
  if constexpr (kHasGpuBuilds) {
    if (stream.queue() != nullptr) return gpu::MakeSegmentsScratchBytes(occurrences, stream);
  }
  return occurrences * sizeof(uint64_t);
}

}  // namespace cistern::op
