// New values for many keys, and their split into shards.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/base/types.h"
#include "common/value/shard_map.h"

namespace cistern::server {

// New values for keys of this server: one staged push. Borrowed arrays.
struct ValueBlock {
  absl::Span<const Key> keys;
  const float* values = nullptr;        // [keys.size(), layout.full_floats()]
  const uint8_t* has_embedx = nullptr;  // [keys.size()]: whether the value holds its embedx
};

// Values for keys, collected one at a time. Owned arrays, with the shapes of ValueBlock.
struct RowBatch {
  std::vector<Key> keys;
  std::vector<float> values;
  std::vector<uint8_t> has_embedx;

  size_t size() const { return keys.size(); }
  // value: [cells].
  void Add(Key key, const float* value, size_t cells, bool with_embedx) {
    keys.push_back(key);
    values.insert(values.end(), value, value + cells);
    has_embedx.push_back(with_embedx ? 1 : 0);
  }
  void Clear() {
    keys.clear();
    values.clear();
    has_embedx.clear();
  }
};

// Keys begin .. end-1 of block `block`, all in one shard.
struct KeyRange {
  uint32_t block = 0, begin = 0, end = 0;
};

// For each local shard of one server, its keys as ranges, in block order. The ranges are few and
// long where senders order keys by shard.
std::vector<std::vector<KeyRange>> RangesByShard(const ShardMap& map, uint32_t local_shard_num,
                                                 absl::Span<const ValueBlock> blocks);

}  // namespace cistern::server
