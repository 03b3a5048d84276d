// How the bytes of a file of rows are laid out (common/serving/rows_file.h describes them): what
// its writer and its reader share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "common/base/hash.h"
#include "common/serving/row_precision.h"

namespace cistern {

struct RowsShape {
  RowPrecision precision = RowPrecision::kFloat32;
  uint32_t dim = 0;
};

// 64 bytes, one cache line.
struct RowsGroup {
  static constexpr uint64_t kMaxTags = 56;
  static constexpr uint64_t kLarge = 255;  // the count of a group without tags

  uint64_t head = 0;            // first row in the low 48 bits, count in the high 8
  uint8_t tags[kMaxTags] = {};  // of a large group in the packed format: where its tags are, u64

  uint64_t first() const { return head & ((uint64_t{1} << 48) - 1); }
  uint32_t count() const { return static_cast<uint32_t>(head >> 56); }
  bool is_large() const { return count() == kLarge; }
  uint64_t tags_at() const {
    uint64_t at = 0;
    std::memcpy(&at, tags, sizeof(at));
    return at;
  }
};
static_assert(sizeof(RowsGroup) == 64);

// The sizes of a file, and how a key is found again from the bytes of its row.
struct RowsLayout {
  enum Format : uint32_t { kPlain = 1, kPacked = 2 };

  Format format = kPlain;
  RowsShape shape;
  uint64_t groups = 1;
  size_t key_bytes = sizeof(Key);      // before the weights
  uint64_t field_mask = ~uint64_t{0};  // of so many bytes
  size_t row_bytes = 0;

  // The layout in which rows of this shape are written.
  static RowsLayout ForWriting(const RowsShape& shape, uint64_t rows);
  static RowsLayout Of(Format format, const RowsShape& shape, uint64_t groups);

  bool packed() const { return format == kPacked; }
  // The group of a mixed key.
  uint64_t GroupIndex(uint64_t mixed) const {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(mixed) * groups >> 64);
  }
  static uint8_t TagOf(uint64_t mixed) { return static_cast<uint8_t>(mixed); }
  // What the row of a key begins with. mixed: MixKey(key).
  uint64_t KeyField(Key key, uint64_t mixed) const {
    return packed() ? mixed >> 8 & field_mask : key;
  }
  // The mixed key, from the start of its row, its group and its tag. Any bytes give a number.
  uint64_t MixedOf(uint64_t field, uint64_t group, uint8_t tag) const;
  // The field at the start of a row; reads 8 bytes.
  uint64_t FieldAt(const char* row) const {
    uint64_t field = 0;
    std::memcpy(&field, row, sizeof(field));
    return field & field_mask;
  }
};

// The last 64 bytes of a file.
struct RowsFooter {
  char magic[8] = {'C', 'S', 'T', 'N', 'R', 'O', 'W', 'S'};
  uint32_t format = RowsLayout::kPlain, precision = 0;
  uint64_t rows = 0, groups = 0;
  uint32_t dim = 0, zero = 0;
  uint64_t removed = 0, content_xxh3 = 0, self_xxh3 = 0;
  uint64_t Self() const { return HashBytes(this, sizeof(*this) - sizeof(self_xxh3)); }
};
static_assert(sizeof(RowsFooter) == 64);

// The bytes of a bit for each row, in u64 words.
inline uint64_t RemovedBytes(uint64_t rows) {
  return (rows + 63) / 64 * sizeof(uint64_t);
}

inline uint64_t RoundUpTo8(uint64_t bytes) {
  return (bytes + 7) / 8 * 8;
}

// What a row adds to the digest of its table: XXH3 of the row in the plain format
// (row_precision.h), whatever the format of its file. weights: as stored.
class ServedRowDigest {
 public:
  explicit ServedRowDigest(const RowsShape& shape);
  uint64_t Of(Key key, const char* weights);

 private:
  const size_t weight_bytes_;
  std::string row_;
};

}  // namespace cistern
