// Sorts the keys of one transfer by server and shard, and cuts them into calls.
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
  std::vector<uint32_t> order;  // [n]: indices into the caller's arrays, by (server, shard)
  std::vector<Chunk> chunks;    // ascending ranges of `order`
};

// One counting sort; keys of a shard keep their relative order. A chunk holds at most `chunk_keys`
// keys. keys: fewer than 2^32.
KeyRouting RouteKeys(const ShardMap& map, absl::Span<const Key> keys, size_t chunk_keys);

}  // namespace cistern
