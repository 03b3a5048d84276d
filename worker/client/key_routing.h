// The keys of one transfer, sorted by server and shard and cut into calls.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/base/types.h"
#include "common/value/shard_map.h"

namespace cistern {

struct KeyRouting {
  // Consecutive keys that travel in one call.
  struct Chunk {
    uint32_t server = 0;
    uint32_t begin = 0, end = 0;  // range of `order`
  };
  std::vector<uint32_t> order;  // [n]: positions in the caller's arrays, by (server, shard)
  std::vector<Chunk> chunks;    // in the order of `order`
};

// One counting sort; keys of a shard keep their order. At most `chunk_keys` keys a chunk.
// keys: fewer than 2^32.
KeyRouting RouteKeys(const ShardMap& map, absl::Span<const Key> keys, size_t chunk_keys);

}  // namespace cistern
