// The rows of one table for serving: an immutable hash map that is used where it is mapped.
//
//   groups   64 bytes each: first row u48, row count u8 at byte 7, then a tag for each row (up to
//            56 bytes); a group of more rows has the count 255 and no tags
//   rows     key, then weights, then in the plain format zeros up to a multiple of 8; in ascending
//            order of the mixed key, so that the rows of a group are adjacent
//   tags     in the packed format: those of large groups, then zeros up to a multiple of 8
//   removed  a bit per row, in u64 words; only if some row is removed (in deltas)
//   footer   64 bytes
//
// A key belongs to group mixed * groups / 2^64 (mixed: MixKey of common/base/hash.h), and its tag
// is the low byte of the mixed key. A search reads one group and, almost always, one row. All
// numbers are little-endian.
//
// The plain format (1) stores the key as u64, and has 24 rows a group on average: the index costs
// 2.7 bytes a row. The packed format (2) stores only those bits of the mixed key that neither group
// nor tag tell: bits 8 and up, in as many bytes as it takes (5 for 10 million rows). It has 36 rows
// a group. Rows of int8 weights are written so: they are short, and the key counts.
//
// Groups of more than 56 rows are rare, and searched by bisection. In the packed format the first 8
// bytes of such a group's tags say where its tags begin among those after the rows.
//
// Footer: "CSTNROWS", format u32, precision u32, rows u64, groups u64, dim u32, zero u32, removed
// rows u64, XXH3 of all bytes before the footer u64, XXH3 of the footer's first 56 bytes u64. (The
// digest of the rows is in serving.json.)
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/base/types.h"
#include "common/serving/rows_layout.h"

namespace cistern {

// Such a file in memory.
//
// Threads: any thread.
class RowsView {
 public:
  // bytes: the whole file, aligned to 8 bytes; they outlive the view. kDataLoss unless size and
  // footer are consistent. Does not read the rows: see Verify.
  static absl::StatusOr<RowsView> Parse(absl::string_view bytes);

  const RowsShape& shape() const { return layout_.shape; }
  uint64_t rows() const { return rows_; }

  // What a lookup knows of each key.
  enum State : uint8_t { kUnknown, kFound, kRemoved };
  // Looks up those keys whose state is kUnknown, writes the weights of those found to
  // out + i * stride, and sets their states. state, out: for all n keys. stride: in floats.
  void Lookup(absl::Span<const Key> keys, State* state, float* out, size_t stride) const;
  // The same, but writes to weights[i] where the stored weights are (WeightBytes of them).
  void Find(absl::Span<const Key> keys, State* state, const char** weights) const;

  // The rows in the order of the file.
  //
  // Threads: one at a time.
  class Cursor;

  // kDataLoss unless the bytes match their hash and every group lists the rows that belong to it.
  absl::Status Verify() const;
  // The same without the hash, for bytes whose hash is known to be right.
  absl::Status VerifyGroups() const;
  // The digest of the rows (RowsEncoder::digest).
  uint64_t Digest() const;

 private:
  const RowsGroup& GroupOf(uint64_t mixed) const { return groups_[layout_.GroupIndex(mixed)]; }
  const char* RowAt(uint64_t i) const { return first_row_ + i * layout_.row_bytes; }
  bool is_removed(uint64_t i) const {
    return removed_ != nullptr && (removed_[i / 64] >> (i % 64) & 1) != 0;
  }
  // The mixed key of row i, which belongs to group g.
  uint64_t MixedAt(uint64_t i, uint64_t g) const;
  // One past the last row of a group.
  uint64_t EndOf(uint64_t g) const;
  uint64_t FindInLarge(uint64_t g, uint64_t mixed) const;
  // A bit for each row of the group that has the tag of `mixed`; meaningless for a large group.
  static uint64_t TagsOf(const RowsGroup& group, uint64_t mixed);
  // The row of `key` in its group; rows() if there is none. matches: TagsOf. kPacked: the format.
  template <bool kPacked>
  uint64_t FindIn(const RowsGroup& group, uint64_t matches, uint64_t mixed, Key key) const;
  // Calls found(i, stored weights) for each key i that has a row, and sets all states.
  template <class Found>
  void ForFound(absl::Span<const Key> keys, State* state, const Found& found) const {
    layout_.packed() ? ForFoundIn<true>(keys, state, found) : ForFoundIn<false>(keys, state, found);
  }
  template <bool kPacked, class Found>
  void ForFoundIn(absl::Span<const Key> keys, State* state, const Found& found) const;

  absl::string_view bytes_;
  RowsLayout layout_;
  uint64_t rows_ = 0;
  const RowsGroup* groups_ = nullptr;
  const char* first_row_ = nullptr;
  absl::string_view large_tags_;
  const uint64_t* removed_ = nullptr;  // null: no row is removed
  uint64_t content_xxh3_ = 0;
};

class RowsView::Cursor {
 public:
  // At the first row, if there is one. `view` outlives the cursor.
  explicit Cursor(const RowsView& view) : view_(view) { Settle(); }

  bool done() const { return row_ == view_.rows_; }
  // Unless done: the mixed key, and the stored weights; null if the row is removed. Those of a
  // corrupt file are any numbers.
  uint64_t mixed() const { return mixed_; }
  const char* weights() const {
    return view_.is_removed(row_) ? nullptr : view_.RowAt(row_) + view_.layout_.key_bytes;
  }
  void Next() {
    ++row_;
    Settle();
  }

 private:
  void Settle();

  const RowsView& view_;
  uint64_t row_ = 0, group_ = 0, mixed_ = 0;
};

}  // namespace cistern
