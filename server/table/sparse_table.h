// A sparse table's shards on one server: key -> value.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "common/value/shard_map.h"
#include "common/value/value_layout.h"
#include "server/table/row_map.h"
#include "server/table/value_block.h"

namespace cistern {

// Holds committed state only; staged pushes are in CommitState.
//
// Threads: Pull, Scan, Find and counts may run at any time from any thread. Write, Insert, Remove,
// Sweep and Clear exclude them per shard: each shard has one reader-writer lock, and no call holds
// two.
class SparseTable {
 public:
  // kInvalidArgument if the spec has no usable layout.
  static absl::StatusOr<std::unique_ptr<SparseTable>> Create(const v1::TableSpec& spec,
                                                             const ShardMap& map, uint32_t rank);

  const ValueLayout& layout() const { return layout_; }
  const v1::TableSpec& spec() const { return spec_; }

  // OK if every key belongs to a shard of this server and is not reserved; else kOutOfRange, which
  // names the key, its shard and the server that owns it.
  absl::Status CheckKeys(absl::Span<const Key> keys) const;

  // Copies the values of `keys` (checked by CheckKeys) into `out`.
  //
  // keys: [n], any order; fastest when keys of one shard are adjacent.
  // out: [n, layout().full_floats()]; the cells of an absent embedx are zero.
  // has_embedx: [n]: 1 if the value holds its embedx, 0 if not. An absent key is not inserted: it
  // reads as its initial value or, with absent_is_zero, as zeros with has_embedx = kAbsent.
  void Pull(absl::Span<const Key> keys, bool absent_is_zero, float* out, uint8_t* has_embedx) const;

  // Writes the values of all blocks in order and creates rows as needed. Shards run in parallel on
  // `pool`. The caller has checked the keys. After this call a pull sees every value.
  void Write(absl::Span<const ValueBlock> blocks, ThreadPool& pool);

  // Prepares such a Write for one shard by storing the rows that it will create. No pull sees them,
  // and a pull waits for a few rows at most.
  void Place(uint32_t local, absl::Span<const ValueBlock> blocks,
             absl::Span<const KeyRange> ranges);
  // Discards everything that was placed and not written.
  void DropPlaced();

  // Writes one row of local shard `local`. Used to load files, when the caller owns the whole
  // table.
  void Insert(uint32_t local, Key key, const float* value, bool has_embedx);

  // Removes one row of local shard `local`; false if it is absent.
  bool Remove(uint32_t local, Key key);

  // Calls visit(key, value, has_embedx) for every row of a local shard, in index order. value: the
  // stored cells, layout().floats(has_embedx) of them, which visit may change; its result decides
  // whether the row stays. Runs under the shard's lock.
  void Sweep(uint32_t local,
             const std::function<RowFate(Key, float* value, bool has_embedx)>& visit);

  // Writes many rows of one shard. values: [n, full_floats]; has_embedx: [n].
  void WriteShard(uint32_t local, absl::Span<const Key> keys, const float* values,
                  const uint8_t* has_embedx);

  // Creates rows of one shard, up to the first that already exists; returns how many it created.
  size_t CreateRows(uint32_t local, absl::Span<const Key> keys, const float* values,
                    const uint8_t* has_embedx);

  // Announces that a shard will get about `rows` more rows, which makes writing them faster.
  void Expect(uint32_t local, size_t rows);

  // Calls read with the rows of a shard, under its lock: `read` must not do I/O or call this table.
  void ReadShard(uint32_t local, const std::function<void(const RowMap& rows)>& read) const;

  // Calls visit(key, value, has_embedx) for up to `limit` > 0 rows of a shard from `cursor` on (0 =
  // start) and returns the next cursor, 0 at the end. The order is that of the index, stable while
  // the shard is not written. value: full_floats cells, zeros where embedx is absent; valid until
  // visit returns. visit runs under the shard's lock: it must not do I/O or call anything that
  // writes the table.
  uint64_t Scan(uint32_t local, uint64_t cursor, size_t limit,
                const std::function<void(Key, const float*, bool)>& visit) const;

  // Copies one value (full_floats cells); false if absent.
  bool Find(Key key, float* out, bool* has_embedx) const;

  void Clear();

  // embedx_rows: rows that hold their embedx. value_bytes: cells without keys. memory_bytes:
  // resident bytes of records and indexes.
  struct Counts {
    uint64_t rows = 0, embedx_rows = 0, value_bytes = 0, memory_bytes = 0;
  };
  Counts counts() const;
  // The sum over all rows of their hashes (common/value/row_digest.h). It is independent of order
  // and placement, and the digests of shards and servers add up.
  uint64_t Digest() const;

  uint32_t local_shard_num() const { return static_cast<uint32_t>(shards_.size()); }
  const ShardMap& shard_map() const { return map_; }
  uint32_t rank() const { return rank_; }

 private:
  // The rows of one shard and their lock. A call takes the lock once for all rows that it has for
  // this shard, and never while it holds that of another one.
  struct Shard {
    explicit Shard(const ValueLayout* layout) : rows(std::make_unique<RowMap>(layout)) {}
    mutable absl::Mutex mutex;
    std::unique_ptr<RowMap> rows ABSL_GUARDED_BY(mutex) ABSL_PT_GUARDED_BY(mutex);
    mutable std::atomic<uint64_t> reads = 0;  // keys pulled since pages last moved
  };

  SparseTable(const v1::TableSpec& spec, const ValueLayout& layout, const ShardMap& map,
              uint32_t rank);
  // The pages of a shard that have been read so often that they should move onto huge pages.
  static std::vector<char*> PagesToMove(Shard& shard) ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex);
  absl::Status ForeignKey(Key key) const;
  absl::Status ReservedKey(Key key) const;

  const v1::TableSpec spec_;
  const ValueLayout layout_;
  const ShardMap map_;
  const uint32_t rank_;
  std::vector<std::unique_ptr<Shard>> shards_;  // the vector is constant after construction
};

}  // namespace cistern
