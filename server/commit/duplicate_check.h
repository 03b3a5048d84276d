// Finds a key that occurs twice among the pushes of a pass: two workers both own it, or one worker
// pushed it twice. Either way one of the values would be lost.
#pragma once

#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/thread_pool.h"
#include "server/table/value_block.h"

namespace cistern {

// Returns a key that occurs more than once in `blocks`; none if all keys are distinct. If several
// do, always returns the same one. Shards run in parallel on `pool`; during the call each needs 16
// to 32 bytes of memory per key.
absl::optional<Key> FindDuplicateKey(const ShardMap& map, uint32_t local_shard_num,
                                     absl::Span<const ValueBlock> blocks, ThreadPool& pool);

}  // namespace cistern
