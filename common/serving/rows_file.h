// The rows of one table for serving: an immutable hash map that is used where it is mapped.
//
//   groups   64 bytes each: first row u48, row count u8 at byte 7, then a tag for each row (up to
//            56 bytes); a group of more rows has the count 255 and no tags
//   rows     row_bytes each (row_precision.h): the key, then the weights; in ascending order of the
//            mixed key, so that the rows of a group are adjacent
//   removed  a bit per row, in u64 words; only if some row is removed (in deltas)
//   footer   64 bytes
//
// A key belongs to group mixed * groups / 2^64 (mixed: MixKey of common/base/hash.h), and its tag
// is the low byte of the mixed key. A search reads one group and, almost always, one row. A group
// holds 24 rows on average, so the index costs 2.7 bytes a row. Groups of more than 56 rows occur
// only with keys chosen for it; they are searched by bisection. All numbers are little-endian.
//
// Footer: "CSTNROWS", format u32 (1), precision u32, rows u64, groups u64, dim u32, zero u32,
// removed rows u64, XXH3 of all bytes before the footer u64, XXH3 of the footer's first 56 bytes
// u64. (The digest of the rows is in serving.json.)
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/base/types.h"
#include "common/serving/row_precision.h"

namespace cistern {

// Receives the bytes of a file in order.
using ByteSink = std::function<absl::Status(absl::string_view)>;

struct RowsShape {
  RowPrecision precision = RowPrecision::kFloat32;
  uint32_t dim = 0;
};

// Writes such a file: Begin with all keys, then each row in their order, then End.
//
// Threads: one at a time.
class RowsEncoder {
 public:
  RowsEncoder(const RowsShape& shape, ByteSink sink);
  ~RowsEncoder();

  // mixed: MixKey of every key, distinct and ascending.
  absl::Status Begin(absl::Span<const uint64_t> mixed);
  // The next row: with these weights, [dim]; already encoded, with its key; or removed.
  absl::Status Add(Key key, const float* weights);
  absl::Status AddEncoded(const char* row);
  absl::Status AddRemoved(Key key);
  absl::Status End();

  // After End: the sum over the rows that are not removed of XXH3 of their bytes, modulo 2^64; and
  // XXH3 of the whole file.
  uint64_t digest() const { return digest_; }
  uint64_t file_xxh3() const { return file_xxh3_; }
  uint64_t bytes() const { return bytes_; }

 private:
  class Hash;
  absl::Status Put(absl::string_view bytes);

  const RowsShape shape_;
  const size_t row_bytes_;
  const ByteSink sink_;
  const std::unique_ptr<Hash> hash_;
  uint64_t rows_ = 0, groups_ = 0, next_ = 0, removed_num_ = 0;
  uint64_t digest_ = 0, file_xxh3_ = 0, bytes_ = 0;
  std::vector<uint64_t> removed_;
  std::string row_;
};

// Such a file in memory.
//
// Threads: any thread.
class RowsView {
 public:
  // bytes: the whole file, aligned to 8 bytes; they outlive the view. kDataLoss unless size and
  // footer are consistent. Does not read the rows: see Verify.
  static absl::StatusOr<RowsView> Parse(absl::string_view bytes);

  const RowsShape& shape() const { return shape_; }
  uint64_t rows() const { return rows_; }

  // Row i in the order of the file, for merging. key: of the row. null: the row is removed.
  Key key(uint64_t i) const;
  const char* row(uint64_t i) const;

  // What a lookup knows of each key.
  enum State : uint8_t { kUnknown, kFound, kRemoved };
  // Looks up those keys whose state is kUnknown, writes the weights of those found to
  // out + i * stride, and sets their states. state, out: for all n keys. stride: in floats.
  void Lookup(absl::Span<const Key> keys, State* state, float* out, size_t stride) const;

  // The row of one key; null if it has none or is removed. Sets *state.
  const char* Find(Key key, State* state) const;

  // kDataLoss unless the bytes match their hash and every group lists the rows that belong to it.
  absl::Status Verify() const;
  // The digest of the rows (RowsEncoder::digest).
  uint64_t Digest() const;

 private:
  struct Group {
    uint64_t head;  // first row in the low 48 bits, count in the high 8
    uint8_t tags[56];
    uint64_t first() const { return head & ((uint64_t{1} << 48) - 1); }
    uint32_t count() const { return static_cast<uint32_t>(head >> 56); }
    bool is_large() const { return count() == 255; }
  };
  static_assert(sizeof(Group) == 64);
  friend class RowsEncoder;

  const Group& GroupOf(uint64_t mixed) const;
  bool is_removed(uint64_t i) const {
    return removed_ != nullptr && (removed_[i / 64] >> (i % 64) & 1) != 0;
  }
  // One past the last row of a large group.
  uint64_t EndOf(const Group& group) const;
  uint64_t FindInLarge(const Group& group, uint64_t mixed) const;
  // A bit for each row of the group that has the tag of `mixed`; meaningless for a large group.
  static uint64_t TagsOf(const Group& group, uint64_t mixed);
  // The row of `key` in its group; rows() if there is none. matches: TagsOf.
  uint64_t FindIn(const Group& group, uint64_t matches, uint64_t mixed, Key key) const;

  absl::string_view bytes_;
  RowsShape shape_;
  size_t row_bytes_ = 0;
  uint64_t rows_ = 0, group_num_ = 0;
  const Group* groups_ = nullptr;
  const char* first_row_ = nullptr;
  const uint64_t* removed_ = nullptr;  // null: no row is removed
  uint64_t content_xxh3_ = 0;
};

// Writes one file with the newest row of each key of `layers`, oldest first, all of one shape.
// keep_removed: rows that are removed stay as such; else they are left out.
absl::Status MergeRows(absl::Span<const RowsView* const> layers, bool keep_removed,
                       RowsEncoder* out);

}  // namespace cistern
