// A sparse table's shards on one server: key -> value.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "common/value/shard_map.h"
#include "common/value/value_layout.h"
#include "server/table/row_map.h"
#include "server/table/value_block.h"

namespace cistern {

class Shard;

// Committed state lives here, and nothing else does: staged pushes are PassStage's.
//
// Threads: Pull, Scan, Find and stats may run at any time from any thread; Write, Insert, Remove,
// Sweep and Clear exclude them per shard (one reader-writer lock a shard, never two held at once).
class SparseTable {
 public:
  // kInvalidArgument if the spec has no usable layout.
  static absl::StatusOr<std::unique_ptr<SparseTable>> Create(const v1::TableSpec& spec,
                                                             const ShardMap& map, uint32_t rank);
  ~SparseTable();

  const ValueLayout& layout() const { return layout_; }
  const v1::TableSpec& spec() const { return spec_; }

  // OK if every key belongs to a shard of this server and is not reserved; else kOutOfRange that
  // names the key, its shard and the server that owns it.
  absl::Status CheckKeys(absl::Span<const Key> keys) const;

  // Copies the values of `keys` (checked by CheckKeys) into `out`.
  //
  // keys: [n], any order; keys of one shard side by side are fastest.
  // out: [n, layout().full_floats()]; cells of an absent embedx are zero.
  // full: [n]: 1 if the value holds its embedx, 0 if not; an absent key reads as its initial value
  // and is not inserted, or, with absent_is_zero, as zeros with full = kAbsent.
  void Pull(absl::Span<const Key> keys, bool absent_is_zero, float* out, uint8_t* full) const;

  // Writes the values of all blocks, in order, creating rows as needed; shards run in parallel on
  // `pool`. Keys were checked. After this call a pull sees all of it.
  void Write(absl::Span<const ValueBlock> blocks, ThreadPool& pool);

  // Does beforehand what it can of such a Write for one shard, with the rows that it will get: no
  // pull sees any of it, and a pull waits for a few rows at most.
  void Place(uint32_t local, absl::Span<const ValueBlock> blocks,
             absl::Span<const KeyRange> ranges);
  // Forgets all that was placed and not written.
  void DropPlaced();

  // Writes one row of local shard `local` (loading files; the caller owns the whole table then).
  void Insert(uint32_t local, Key key, const float* value, bool full);

  // Removes one row of local shard `local`; false if it is not there.
  bool Remove(uint32_t local, Key key);

  // Calls visit(key, value, full) for every row of a local shard, in index order. value:
  // layout().floats(full) cells where they are stored: visit may change them, and says whether the
  // row stays. Runs under the shard's lock.
  void Sweep(uint32_t local, const std::function<RowFate(Key, float* value, bool full)>& visit);

  // The same for many rows of one shard. values: [n, full_floats]; full: [n].
  void WriteShard(uint32_t local, absl::Span<const Key> keys, const float* values,
                  const uint8_t* full);

  // Creates rows of one shard, up to the first that is there already; returns how many it created.
  // values: [n, full_floats]; full: [n].
  size_t CreateRows(uint32_t local, absl::Span<const Key> keys, const float* values,
                    const uint8_t* full);

  // Says that a shard, if it is empty, will get about `rows` rows: they are written faster then.
  void Expect(uint32_t local, size_t rows);

  // Calls read with the rows of a shard, under its lock: no I/O in it, and no call of this table.
  void ReadShard(uint32_t local, const std::function<void(const RowMap& rows)>& read) const;

  // Calls visit(key, value, full) for up to `limit` > 0 rows of a shard from `cursor` on (0 =
  // start) and returns the next cursor, 0 at the end. Order is that of the index, the same as long
  // as the shard is not written. value: full_floats cells, zeros where embedx is absent; valid
  // until visit returns. visit runs under the shard's lock: no I/O in it, and no call that writes
  // the table.
  uint64_t Scan(uint32_t local, uint64_t cursor, size_t limit,
                const std::function<void(Key, const float*, bool)>& visit) const;

  // Copies one value (full_floats cells); false if absent.
  bool Find(Key key, float* out, bool* full) const;

  void Clear();

  // embedx_rows: rows whose value is full. value_bytes: cells without keys. memory_bytes: records
  // and indexes, as they are resident.
  struct Counts {
    uint64_t rows = 0, embedx_rows = 0, value_bytes = 0, memory_bytes = 0;
  };
  Counts counts() const;
  // Sum over rows of their hashes (common/value/row_digest.h): independent of order and placement,
  // and it adds up over shards and servers.
  uint64_t Digest() const;

  uint32_t local_shard_num() const { return static_cast<uint32_t>(shards_.size()); }
  const ShardMap& shard_map() const { return map_; }
  uint32_t rank() const { return rank_; }

 private:
  SparseTable(const v1::TableSpec& spec, const ValueLayout& layout, const ShardMap& map,
              uint32_t rank);
  absl::Status ForeignKey(Key key) const;
  absl::Status ReservedKey(Key key) const;

  const v1::TableSpec spec_;
  const ValueLayout layout_;
  const ShardMap map_;
  const uint32_t rank_;
  std::vector<std::unique_ptr<Shard>>
      shards_;  // constant after construction; shards lock themselves
};

}  // namespace cistern
