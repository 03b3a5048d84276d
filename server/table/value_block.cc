#include "server/table/value_block.h"

#include "common/base/check.h"

namespace cistern::server {

std::vector<std::vector<KeyRange>> RangesByShard(const ShardMap& map, uint32_t local_shard_num,
                                                 absl::Span<const ValueBlock> blocks) {
  std::vector<std::vector<KeyRange>> ranges(local_shard_num);
  for (uint32_t b = 0; b < blocks.size(); ++b) {
    const absl::Span<const Key> keys = blocks[b].keys;
    CISTERN_CHECK(keys.size() <= UINT32_MAX);
    const uint32_t count = static_cast<uint32_t>(keys.size());
    for (uint32_t begin = 0, end; begin < count; begin = end) {
      const ShardIndex shard = map.shard(keys[begin]);
      for (end = begin + 1; end < count && map.shard(keys[end]) == shard;) ++end;
      ranges[map.local_index(shard)].push_back({b, begin, end});
    }
  }
  return ranges;
}

}  // namespace cistern::server
