// New values for many keys, and which of them go to which shard.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/base/types.h"
#include "common/value/shard_map.h"

namespace cistern {

// New values for keys of this server: one push, as it was staged. Borrowed arrays.
struct ValueBlock {
  absl::Span<const Key> keys;
  const float* values = nullptr;  // [keys.size(), layout.full_floats()]
  const uint8_t* full = nullptr;  // [keys.size()]: whether the value holds its embedx
};

// Values for keys, collected one after another. Owned arrays, as ValueBlock has them.
struct RowBatch {
  std::vector<Key> keys;
  std::vector<float> values;
  std::vector<uint8_t> full;

  size_t size() const { return keys.size(); }
  // value: [cells].
  void Add(Key key, const float* value, size_t cells, bool is_full) {
    keys.push_back(key);
    values.insert(values.end(), value, value + cells);
    full.push_back(is_full ? 1 : 0);
  }
  void Clear() {
    keys.clear();
    values.clear();
    full.clear();
  }
};

// Keys begin .. end-1 of block `block`, all of one shard.
struct KeyRange {
  uint32_t block = 0, begin = 0, end = 0;
};

// For each local shard of one server, its keys as ranges, in the order of the blocks. Few and long
// where senders order keys by shard.
std::vector<std::vector<KeyRange>> RangesByShard(const ShardMap& map, uint32_t local_shard_num,
                                                 absl::Span<const ValueBlock> blocks);

}  // namespace cistern
