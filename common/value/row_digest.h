// The hash of one row, of which a table's digest is the sum: of a sparse table its rows', of a
// dense one its cells'. Sums of parts add up (modulo 2^64), in any order.
#pragma once

#include <cstring>
#include <vector>

#include "common/base/hash.h"
#include "common/base/types.h"
#include "common/value/value_layout.h"

namespace cistern {

// XXH3-64 of {key u64, full u64, full_floats cells (zeros where embedx is absent)}, little-endian.
//
// Threads: one at a time (it keeps a buffer).
class RowDigest {
 public:
  explicit RowDigest(const ValueLayout& layout)
      : layout_(layout), row_(2 * sizeof(uint64_t) + layout.full_floats() * sizeof(float)) {}

  // value: full_floats cells; those beyond floats(full) are not looked at.
  uint64_t operator()(Key key, const float* value, bool full) {
    const uint64_t head[2] = {key, full};
    const size_t bytes = layout_.floats(full) * sizeof(float);
    std::memcpy(row_.data(), head, sizeof(head));
    std::memcpy(row_.data() + sizeof(head), value, bytes);
    std::memset(row_.data() + sizeof(head) + bytes, 0, row_.size() - sizeof(head) - bytes);
    return HashBytes(row_.data(), row_.size());
  }

 private:
  const ValueLayout& layout_;
  std::vector<char> row_;
};

// XXH3-64 of {row u64, column u32, bits u32}, little-endian; row: of the whole dense table.
inline uint64_t DenseCellDigest(uint64_t row, uint32_t column, float cell) {
  struct {
    uint64_t row;
    uint32_t column, bits;
  } bytes = {row, column, 0};
  std::memcpy(&bytes.bits, &cell, sizeof(cell));
  return HashBytes(&bytes, sizeof(bytes));
}

}  // namespace cistern
