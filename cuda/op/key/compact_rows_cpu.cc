#include "cuda/op/key/compact_rows.h"

#include <algorithm>

#include "cuda/op/primitive/cpu.h"

namespace cistern::op {

namespace gpu {  // compact_rows.cu
decltype(op::CompactRows) CompactRows;
decltype(op::CompactRowsScratchBytes) CompactRowsScratchBytes;
}  // namespace gpu

void CompactRows(Row* rows, size_t count, Row* distinct_rows, uint32_t* distinct, void* scratch,
                 Stream& stream) {
  CISTERN_RUN_ON_GPU(CompactRows, rows, count, distinct_rows, distinct, scratch);
  std::copy(rows, rows + count, distinct_rows);
  std::sort(distinct_rows, distinct_rows + count);
  const Row* const end = std::unique(distinct_rows, distinct_rows + count);
  *distinct = static_cast<uint32_t>(end - distinct_rows);
  ForPieces(count, kElementGrain, 8 * count, [=](size_t first, size_t last) {
    for (size_t k = first; k < last; ++k) {
      const Row* place = std::lower_bound<const Row*>(distinct_rows, end, rows[k]);
      rows[k] = static_cast<Row>(place - distinct_rows);
    }
  });
}

size_t CompactRowsScratchBytes(size_t count, Stream& stream) {
  if constexpr (kHasGpuBuilds) {
    if (stream.queue() != nullptr) return gpu::CompactRowsScratchBytes(count, stream);
  }
  return 0;
}

}  // namespace cistern::op
