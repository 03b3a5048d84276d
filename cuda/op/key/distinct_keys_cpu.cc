#include "cuda/op/key/distinct_keys.h"

#include <algorithm>

#include "common/base/hash.h"
#include "cuda/op/primitive/cpu.h"

namespace cistern::op {

namespace gpu {  // distinct_keys.cu
decltype(op::AddDistinctKeys) AddDistinctKeys;
decltype(op::AddDistinctKeysScratchBytes) AddDistinctKeysScratchBytes;
}  // namespace gpu

void AddDistinctKeys(const Key* keys, size_t count, const uint64_t* held, size_t held_count,
                     uint64_t* merged, uint64_t* merged_count, uint64_t* added, void* scratch,
                     Stream& stream) {
  CISTERN_RUN_ON_GPU(AddDistinctKeys, keys, count, held, held_count, merged, merged_count, added,
                     scratch);
  auto* mixed = static_cast<uint64_t*>(scratch);
  std::transform(keys, keys + count, mixed, MixKey);
  std::sort(mixed, mixed + count);
  uint64_t* const end = std::unique(mixed, mixed + count);
  const uint64_t* merged_end = std::set_union(held, held + held_count, mixed, end, merged);
  *merged_count = static_cast<uint64_t>(merged_end - merged);
  if (added != nullptr) std::set_difference(mixed, end, held, held + held_count, added);
}

size_t AddDistinctKeysScratchBytes(size_t count, size_t held_count, Stream& stream) {
  if constexpr (kHasGpuBuilds) {
    if (stream.queue() != nullptr) {
      return gpu::AddDistinctKeysScratchBytes(count, held_count, stream);
    }
  }
  return count * sizeof(uint64_t);
}

}  // namespace cistern::op
