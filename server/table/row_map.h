// The rows of one shard, without its lock: an arena of records and an index that finds them.
//
// A record is the key (8 bytes) and the cells of its value, rounded up to 8 bytes; nothing else.
// Whether the value is full, and so how long the record is, stands in the index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "common/value/value_layout.h"
#include "server/table/arena.h"
#include "server/table/bucket_index.h"

namespace cistern {

// What becomes of a row that a sweep has visited.
enum class RowFate { kKeep, kRemove };

// Threads: const methods from any thread while none writes.
class RowMap {
 public:
  // layout outlives this.
  explicit RowMap(const ValueLayout* layout) : layout_(layout), index_(&arena_) {}

  // Copies the values of `keys` into out [n, full_floats] and full [n], as SparseTable::Pull says.
  void Read(absl::Span<const Key> keys, bool absent_is_zero, float* out, uint8_t* full) const;
  // Creates or overwrites the rows of `keys`. values: [n, full_floats]; full: [n].
  void Write(absl::Span<const Key> keys, const float* values, const uint8_t* full);
  void Write(Key key, const float* value, bool full);
  // Creates the rows of `keys`, up to the first whose key is there; returns how many it created.
  size_t Create(absl::Span<const Key> keys, const float* values, const uint8_t* full);

  // Stores the rows of those `keys` that are new, as Write will be asked to, which then has little
  // left to do: until then nobody finds them. For work that can be done while a disk is waited for.
  void Place(absl::Span<const Key> keys, const float* values, const uint8_t* full);
  // Forgets what was placed and not written.
  void DropPlaced();

  // Says that about `rows` rows will be created soon; does nothing where there are rows, or some
  // were placed.
  void Expect(size_t rows);

  // Removes a row and frees its record for another; false if absent.
  bool Remove(Key key);
  // Visits every row once; the cells (floats(full) of them, where they are stored) may be changed.
  void Sweep(const std::function<RowFate(Key, float* value, bool full)>& visit);

  // One value, full_floats cells; false if absent.
  bool Find(Key key, float* out, bool* full) const;

  // Visits up to `limit` rows from `cursor` on, as SparseTable::Scan says.
  uint64_t Scan(uint64_t cursor, size_t limit,
                const std::function<void(Key, const float*, bool)>& visit) const;

  // A row where it is stored: good until the next write. cells: floats(full) of them.
  struct Stored {
    Key key = 0;
    const float* cells = nullptr;  // null: there is no such row
    bool full = false;
  };
  // Every row, in no order.
  std::vector<Stored> All() const;
  // The rows of `keys`, in their order.
  std::vector<Stored> Locate(absl::Span<const Key> keys) const;

  size_t rows() const { return index_.size(); }
  size_t full_rows() const { return full_rows_; }
  size_t value_bytes() const {
    return (full_rows_ * layout_->full_floats() + (rows() - full_rows_) * layout_->short_floats()) *
           sizeof(float);
  }
  size_t memory_bytes() const { return arena_.resident_bytes() + index_.own_bytes(); }

 private:
  size_t RecordBytes(bool full) const {
    return (sizeof(Key) + layout_->floats(full) * sizeof(float) + 7) / 8 * 8;
  }
  // Calls use(i, hash of key i) for each key, in order; what a search for it and a write to its
  // row touch is on its way by then.
  template <typename Use>
  void Visit(absl::Span<const Key> keys, Use use) const;
  void PrefetchRecord(Slot slot) const;
  static Stored StoredIn(Slot slot);
  void CopyValue(const char* record, bool full, float* out) const;
  void WriteRecord(char* record, Key key, const float* value, bool full) const;
  void Free(Slot slot);
  void Upsert(uint64_t hash, Key key, const float* value, bool full);
  // The record of a row that is new, filled; not yet counted, nor in the index.
  char* NewRecord(Key key, const float* value, bool full);
  // The same, placed before, if it was.
  char* TakePlaced(Key key, bool full);

  const ValueLayout* const layout_;
  Arena arena_;
  BucketIndex index_;
  size_t full_rows_ = 0;
  std::vector<Slot> placed_;  // in the order of the keys
  size_t next_placed_ = 0;    // those before were written
};

}  // namespace cistern
