// Hashes that make up a table's digest: the sum (modulo 2^64) of the row hashes of a sparse table,
// or of the cell hashes of a dense table. Digests of parts add up in any order.
#pragma once

#include <bit>
#include <cstring>
#include <vector>

#include "common/base/hash.h"
#include "common/base/types.h"
#include "common/value/value_layout.h"

namespace cistern {

// XXH3-64 of {key u64, has_embedx u64, full_floats cells (zeros if embedx is absent)},
// little-endian.
//
// Threads: one at a time (each object has one buffer).
class RowDigest {
 public:
  explicit RowDigest(const ValueLayout& layout)
      : layout_(layout), row_(2 * sizeof(uint64_t) + layout.full_floats() * sizeof(float)) {}

  // value: full_floats cells; cells beyond floats(has_embedx) are ignored.
  uint64_t operator()(Key key, const float* value, bool has_embedx) {
    const uint64_t head[2] = {key, has_embedx};
    const size_t bytes = layout_.floats(has_embedx) * sizeof(float);
    std::memcpy(row_.data(), head, sizeof(head));
    std::memcpy(row_.data() + sizeof(head), value, bytes);
    std::memset(row_.data() + sizeof(head) + bytes, 0, row_.size() - sizeof(head) - bytes);
    return HashBytes(row_.data(), row_.size());
  }

 private:
  const ValueLayout& layout_;
  std::vector<char> row_;
};

// XXH3-64 of {row u64, column u32, bits u32}, little-endian. row: index in the whole dense table.
inline uint64_t DenseCellDigest(uint64_t row, uint32_t column, float cell) {
  return HashPair(row, column | uint64_t{std::bit_cast<uint32_t>(cell)} << 32);
}

}  // namespace cistern
