#include "worker/client/key_routing.h"

#include <algorithm>
#include <limits>

#include "common/base/check.h"

namespace cistern {

KeyRouting RouteKeys(const ShardMap& map, absl::Span<const Key> keys, size_t chunk_keys) {
  CISTERN_CHECK(keys.size() < std::numeric_limits<uint32_t>::max() && chunk_keys > 0);
  const uint32_t shard_num = map.shard_num();

  // place[shard]: first the number of keys of the shard, then the index of its next key in `order`.
  std::vector<uint16_t> shards(keys.size());
  std::vector<uint32_t> place(shard_num, 0);
  for (size_t i = 0; i < keys.size(); ++i) {
    const ShardIndex shard = map.shard(keys[i]);
    shards[i] = static_cast<uint16_t>(shard);
    ++place[shard];
  }

  KeyRouting routing;
  uint32_t next = 0;
  for (uint32_t server = 0; server < map.server_num(); ++server) {
    const uint32_t server_begin = next;
    for (ShardIndex shard = server; shard < shard_num; shard += map.server_num()) {
      const uint32_t count = place[shard];
      place[shard] = next;
      next += count;
    }
    for (uint64_t begin = server_begin; begin < next; begin += chunk_keys) {
      const uint64_t end = std::min<uint64_t>(begin + chunk_keys, next);
      routing.chunks.push_back({server, static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
    }
  }

  routing.order.resize(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    routing.order[place[shards[i]]++] = static_cast<uint32_t>(i);
  }
  return routing;
}

}  // namespace cistern
