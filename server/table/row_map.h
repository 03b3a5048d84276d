// The rows of one shard, without its lock: an arena of records and the index that finds them.
//
// A record is the key (8 bytes) and the cells of its value, and of a scored map the row's score, in
// all rounded up to 8 bytes. The index stores whether the value holds its embedx, which determines
// the length of the record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/value/value_layout.h"
#include "server/table/arena.h"
#include "server/table/bucket_index.h"
#include "server/table/cold_rows.h"
#include "server/table/hot_rows.h"

namespace cistern::server {

// Threads: const methods from any thread while no thread writes.
class RowMap {
 public:
  // layout outlives this. scored: each row has a score (hot_rows.h).
  explicit RowMap(const ValueLayout* layout, bool scored = false)
      : layout_(layout), score_bytes_(scored ? sizeof(float) : 0), index_(&arena_) {}

  // Copies values into out [n, full_floats] and has_embedx [n], as SparseTable::Pull does.
  void Read(absl::Span<const Key> keys, bool absent_is_zero, float* out, uint8_t* has_embedx) const;
  // Creates or overwrites the rows of `keys`. values: [n, full_floats]; has_embedx: [n].
  void Write(absl::Span<const Key> keys, const float* values, const uint8_t* has_embedx);
  void Write(Key key, const float* value, bool has_embedx);
  // Creates rows, up to the first key that already exists; returns how many it created.
  size_t Create(absl::Span<const Key> keys, const float* values, const uint8_t* has_embedx);

  // Stores the rows of those `keys` that are new, ahead of a Write of the same rows, which then has
  // little left to do. Until that Write no reader finds them. This is work to do while waiting for
  // a disk.
  void Place(absl::Span<const Key> keys, const float* values, const uint8_t* has_embedx);
  // Discards the rows that were placed and not written.
  void DropPlaced();

  // Announces that about `rows` more rows will be created soon.
  void Expect(size_t rows);

  // Removes a row and frees its record for reuse; false if absent.
  bool Remove(Key key);
  // Visits every row once. `visit` may change the stored cells, floats(has_embedx) of them.
  void Sweep(const std::function<RowFate(Key, float* value, bool has_embedx)>& visit);

  // Copies one value, full_floats cells; false if absent.
  bool Find(Key key, float* out, bool* has_embedx) const;
  bool Contains(Key key) const { return index_.Find(MixKey(key), key) != nullptr; }

  // --- scored maps

  // Every later write of a row is one of a pass with this score.
  void set_now(float now) { now_ = now; }
  // Adds all rows to *scores.
  void CountScores(ScoreHistogram* scores) const;
  // Moves those rows of `keys` that exist to their scores after a pass of score `now`. Appends the
  // places in `keys` of the others to *absent.
  void MoveScores(absl::Span<const Key> keys, float now, ScoreHistogram* scores,
                  std::vector<uint32_t>* absent) const;
  // Overwrites those rows of `keys` that exist; appends the places of the others to *absent.
  void Update(absl::Span<const Key> keys, const float* values, const uint8_t* has_embedx,
              std::vector<uint32_t>* absent);
  // Creates a row, which must not exist, with a score.
  void Add(Key key, const float* value, bool has_embedx, float score);
  // Removes the rows that the cut does not keep; returns their number.
  size_t Evict(const ScoreCut& cut);
  // The bytes that a row takes, with its share of the index.
  size_t RowBytes(bool has_embedx) const { return RecordBytes(has_embedx) + kIndexBytes; }

  // Visits up to `limit` rows from `cursor` on, as SparseTable::Scan does.
  uint64_t Scan(uint64_t cursor, size_t limit,
                const std::function<void(Key, const float*, bool)>& visit) const;

  // A stored row, valid until the next write. cells: floats(has_embedx) of them.
  struct Stored {
    Key key = 0;
    const float* cells = nullptr;  // null: the row does not exist
    bool has_embedx = false;
  };
  // Every row, in unspecified order.
  std::vector<Stored> All() const;
  // Every key, in unspecified order.
  std::vector<Key> Keys() const;
  // The rows of `keys`, in their order.
  std::vector<Stored> Locate(absl::Span<const Key> keys) const;

  // Of the arena: full 2 MiB that may move onto huge pages.
  std::vector<char*> TakeFullPages() { return arena_.TakeFullPages(); }

  size_t rows() const { return index_.size(); }
  size_t embedx_rows() const { return embedx_rows_; }
  size_t value_bytes() const {
    return (embedx_rows_ * layout_->full_floats() +
            (rows() - embedx_rows_) * layout_->short_floats()) *
           sizeof(float);
  }
  size_t memory_bytes() const { return arena_.resident_bytes() + index_.own_bytes(); }
  // Of them: what rows that are gone have left, which only new rows use.
  size_t unused_bytes() const { return arena_.resident_bytes() - arena_.used_bytes(); }
  // The same rows, with their scores, in as much memory as they need. No row may be placed.
  std::unique_ptr<RowMap> Packed() const;

 private:
  size_t RecordBytes(bool has_embedx) const {
    return (sizeof(Key) + layout_->floats(has_embedx) * sizeof(float) + score_bytes_ + 7) / 8 * 8;
  }
  float& ScoreIn(Slot slot) const {
    return *reinterpret_cast<float*>(slot.record() + RecordBytes(slot.has_embedx()) -
                                     sizeof(float));
  }
  // Calls use(i, hash of key i) for each key, in order. By then the memory that the search and a
  // write to the row touch has been prefetched.
  template <typename Use>
  void Visit(absl::Span<const Key> keys, Use use) const;
  void PrefetchRecord(Slot slot) const;
  void PrefetchScore(Slot slot) const;  // and the key
  static Stored StoredIn(Slot slot);
  void CopyValue(const char* record, bool has_embedx, float* out) const;
  void WriteRecord(char* record, Key key, const float* value, bool has_embedx) const;
  void Free(Slot slot);
  void Upsert(uint64_t hash, Key key, const float* value, bool has_embedx);
  // Creates and fills the record of a new row, which is not yet counted and not yet in the index.
  char* NewRecord(Key key, const float* value, bool has_embedx);
  // The record that Place stored for a new row; null if it stored none.
  char* TakePlaced(Key key, bool has_embedx);

  static constexpr size_t kIndexBytes = 10;  // of a row, on average (bucket_index.h)

  const ValueLayout* const layout_;
  const size_t score_bytes_;
  float now_ = 0;
  Arena arena_;
  BucketIndex index_;
  size_t embedx_rows_ = 0;
  std::vector<Slot> placed_;  // in the order of the keys
  size_t next_placed_ = 0;    // the slots before it were written
};

}  // namespace cistern::server
