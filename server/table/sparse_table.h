// A sparse table's shards on one server: key -> value.
//
// All rows are in memory or, with a memory limit, some of them: those that many passes had
// (hot_rows.h). The others are read from the files of the last commit (cold_rows.h). Callers see
// one table.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "common/value/shard_map.h"
#include "common/value/value_layout.h"
#include "server/table/eviction.h"
#include "server/table/pulled_digests.h"
#include "server/table/row_map.h"
#include "server/table/value_block.h"

namespace cistern::server {

// Holds committed state only; staged pushes are in CommitState.
//
// Threads: Pull, Scan, Find and counts may run at any time from any thread. Write, Insert, Remove,
// Sweep and Clear exclude them per shard: each shard has one reader-writer lock, and no call holds
// two. No file is read under a lock.
class SparseTable {
 public:
  // tiered: rows may be in files. kInvalidArgument if the spec has no usable layout.
  static absl::StatusOr<std::unique_ptr<SparseTable>> Create(const v1::TableSpec& spec,
                                                             const ShardMap& map, uint32_t rank,
                                                             bool tiered = false);

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
  // pass: 0, or the pass that will train the rows, none of which the pass before it has. If that
  // one is the next to commit, the rows that its commit removes (eviction.h) are absent already.
  // kDataLoss: a file is corrupt. An error leaves *out undefined; so it is below.
  absl::Status Pull(absl::Span<const Key> keys, bool absent_is_zero, float* out,
                    uint8_t* has_embedx, PassId pass = 0) const;

  // Writes the values of all blocks in order and creates rows as needed. Shards run in parallel on
  // `pool`. The caller has checked the keys. After this call a pull sees every value.
  // eviction: what the commit removes; null: nothing.
  void Write(absl::Span<const ValueBlock> blocks, ThreadPool& pool,
             const Eviction* eviction = nullptr);

  // Prepares such a Write for one shard by storing the rows that it will create. No pull sees them,
  // and a pull waits for a few rows at most.
  void Place(uint32_t local, absl::Span<const ValueBlock> blocks,
             absl::Span<const KeyRange> ranges);
  // Discards everything that was placed and not written.
  void DropPlaced();

  // Writes one row of local shard `local`. Used to load files, when the caller owns the whole
  // table.
  void Insert(uint32_t local, Key key, const float* value, bool has_embedx);

  // Changes every row of a local shard: those in memory now, in index order and under the shard's
  // lock; those in files when they are read, until the next durable commit writes all rows. So
  // `change` is a function of the row alone, called from any thread and at any time. visit: called
  // for each row in memory instead of `change`, if given.
  void ChangeAll(uint32_t local, const RowChange& change, const RowChange& visit = nullptr);

  // Writes many rows of one shard. values: [n, full_floats]; has_embedx: [n].
  void WriteShard(uint32_t local, absl::Span<const Key> keys, const float* values,
                  const uint8_t* has_embedx);

  // Removes those of `keys` that are in memory.
  void RemoveRows(uint32_t local, absl::Span<const Key> keys);

  // Creates rows of one shard, up to the first that already exists; returns how many it created.
  size_t CreateRows(uint32_t local, absl::Span<const Key> keys, const float* values,
                    const uint8_t* has_embedx);

  // Announces that a shard will get about `rows` more rows, which makes writing them faster.
  void Expect(uint32_t local, size_t rows);

  // Calls read with the rows of a shard that are in memory, under its lock: `read` must not do I/O
  // or call this table.
  void ReadShard(uint32_t local, const std::function<void(const RowMap& rows)>& read) const;

  // Calls visit(key, value, has_embedx) for up to about `limit` > 0 rows of a shard from `cursor`
  // on (0 = start) and returns the next cursor, 0 at the end. The order is stable while the shard
  // is not written. value: full_floats cells, zeros where embedx is absent; valid until visit
  // returns. visit runs under the shard's lock: it must not do I/O or call anything that writes the
  // table. With rows in files the order is that of the keys, whichever rows are in memory, and a
  // call visits about a megabyte. Every call but the last visits a row. kDataLoss as Pull.
  using Visit = std::function<void(Key, const float*, bool)>;
  absl::StatusOr<uint64_t> Scan(uint32_t local, uint64_t cursor, size_t limit,
                                const Visit& visit) const;
  // The same for all rows of a shard.
  absl::Status ScanAll(uint32_t local, const Visit& visit) const;

  // Copies one value (full_floats cells); false if absent. kDataLoss as Pull.
  absl::StatusOr<bool> Find(Key key, float* out, bool* has_embedx) const;

  void Clear();

  // rows: all of them. The rest is of the rows in memory: embedx_rows: those that hold their
  // embedx. value_bytes: cells without keys. memory_bytes: resident bytes of records and indexes,
  // and of what finds the rows in files (cold_index_bytes).
  struct Counts {
    uint64_t rows = 0, hot_rows = 0, embedx_rows = 0, value_bytes = 0, memory_bytes = 0;
    uint64_t cold_index_bytes = 0;
  };
  Counts counts() const;
  // The rows that pulls have looked for in files since the start, found or not.
  uint64_t cold_reads() const { return cold_reads_.load(std::memory_order_relaxed); }
  // The sum over all rows of their hashes (common/value/row_digest.h). It is independent of order
  // and placement, and the digests of shards and servers add up. kDataLoss as Pull.
  absl::StatusOr<uint64_t> Digest() const;

  // --- bounded tables (eviction.h)

  // The number of all rows of a shard.
  uint64_t rows(uint32_t local) const;
  // The rows that the commit after the last one removes; null: none. In a shard that was loaded or
  // cleared, none are until a commit.
  std::shared_ptr<const DueRows> due(uint32_t local) const;
  // Whether due() was decided from all rows after the commit of `pass`, and none was loaded since.
  bool IsDueKnown(uint32_t local, PassId pass) const;
  // pass: the last that was committed.
  void SetDue(uint32_t local, PassId pass, std::shared_ptr<const DueRows> due);
  // Rows that commits have removed since the table was created.
  RemovedRows removed() const { return {evicted_, expired_}; }

  // --- tiered tables

  bool tiered() const { return tiered_; }

  // The rows of a shard that are in files; null: none are.
  std::shared_ptr<const ColdRows> cold(uint32_t local) const;

  // Those of `keys` (ascending, none in memory) whose rows pulls have read since the last commit
  // but one: a commit takes their hashes out of the shard's digest, and need not read them again.
  std::vector<ColdDigest> KnownDigests(uint32_t local, absl::Span<const Key> keys) const;
  // Sets them, and the number of all rows of the shard.
  void SetCold(uint32_t local, std::shared_ptr<const ColdRows> cold, uint64_t rows);
  // The number of all rows, after a commit in memory.
  void SetRows(uint32_t local, uint64_t rows);

  // Adds the scores (hot_rows.h) of all rows in memory after a pass of score `now` that writes
  // `blocks`, if all of its rows were kept.
  PassRows AddScores(absl::Span<const ValueBlock> blocks, ThreadPool& pool, float now,
                     ScoreHistogram* scores) const;
  // The durable commit of a pass: writes those values that the cut keeps, evicts rows that it does
  // not keep, and sets the files that hold all rows, shard by shard.
  struct Durable {
    std::vector<std::shared_ptr<const ColdRows>> cold;  // [local shard]
    std::vector<uint64_t> rows;                         // [local shard]
    float now = 0;
    ScoreCut cut;
    bool admits = true;                  // rows that were not in memory, if the cut keeps them
    const Eviction* eviction = nullptr;  // as in Write
  };
  void WriteDurable(absl::Span<const ValueBlock> blocks, const Durable& commit, ThreadPool& pool);

  uint32_t local_shard_num() const { return static_cast<uint32_t>(shards_.size()); }
  const ShardMap& shard_map() const { return map_; }
  uint32_t rank() const { return rank_; }

 private:
  static constexpr PassId kNotDecided = ~PassId{0};

  // The rows of one shard and their lock. A call takes the lock once for all rows that it has for
  // this shard, and never while it holds that of another one.
  struct Shard {
    Shard(const ValueLayout* layout, bool scored)
        : rows(std::make_unique<RowMap>(layout, scored)) {}
    mutable absl::Mutex mutex;
    std::unique_ptr<RowMap> rows ABSL_GUARDED_BY(mutex) ABSL_PT_GUARDED_BY(mutex);
    std::shared_ptr<const ColdRows> cold ABSL_GUARDED_BY(mutex);  // null: all rows are in memory
    uint64_t row_num ABSL_GUARDED_BY(mutex) = 0;  // of all rows, unless cold is null
    uint64_t writes ABSL_GUARDED_BY(mutex) = 0;   // calls that changed `rows`
    mutable std::atomic<uint64_t> reads = 0;      // keys pulled since pages last moved
    // The commit after which `due` was decided; kNotDecided: rows were loaded since.
    PassId due_pass ABSL_GUARDED_BY(mutex) = 0;
    std::shared_ptr<const DueRows> due ABSL_GUARDED_BY(mutex);
    void ForgetDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
      due = nullptr;
      due_pass = kNotDecided;
    }

    mutable PulledDigests pulled;

    // What a scan of several calls uses again: the keys in memory after so many writes.
    struct Scanned {
      absl::Mutex mutex;
      uint64_t writes ABSL_GUARDED_BY(mutex) = 0;
      std::shared_ptr<const std::vector<Key>> keys ABSL_GUARDED_BY(mutex);
    };
    mutable Scanned scanned;  // its lock is acquired after `mutex`
  };

  SparseTable(const v1::TableSpec& spec, const ValueLayout& layout, const ShardMap& map,
              uint32_t rank, bool tiered);
  // The end of the keys of one shard that begin at `begin`.
  size_t EndOfShard(absl::Span<const Key> keys, size_t begin) const;
  // Pull for a tiered table.
  absl::Status PullTiered(absl::Span<const Key> keys, bool absent_is_zero, float* out,
                          uint8_t* has_embedx, PassId pass) const;
  // The rows of a shard that are absent for `pass` although they exist; null: none.
  static std::shared_ptr<const DueRows> HiddenFrom(const Shard& shard, PassId pass)
      ABSL_SHARED_LOCKS_REQUIRED(shard.mutex);
  // Makes pulled rows that are `hidden` read as absent. hidden: may be null.
  void Hide(const DueRows* hidden, absl::Span<const Key> keys, bool absent_is_zero, float* out,
            uint8_t* has_embedx) const;
  // Removes the rows that a commit removes from a shard, in memory and, with `files`, in files.
  void Remove(Shard& shard, const Eviction& eviction, uint32_t local, bool files)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex);
  // What a pull of a tiered table does in one shard.
  struct TieredPull;
  // Reads the rows in memory.
  TieredPull BeginTiered(const Shard& shard, absl::Span<const Key> keys, bool absent_is_zero,
                         float* out, uint8_t* has_embedx, PassId pass) const;
  // Handles the rows that were looked for in files.
  void EndTiered(const TieredPull& pull, bool absent_is_zero) const;
  // Forgets the hashes of the rows that a commit writes or removes, and older ones.
  static void EndPulls(Shard& shard, absl::Span<const ValueBlock> blocks,
                       absl::Span<const KeyRange> ranges, absl::Span<const Key> removed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex);
  // The score of a row that is not in memory after a pass of score `now` had it.
  static float ScoreOfNew(const ColdRows* cold, Key key, float now);
  // Scan for one part of a shard with rows in files: in the order of keys, wherever a row is.
  absl::StatusOr<uint64_t> ScanCold(const Shard& shard, uint64_t cursor, size_t limit,
                                    const Visit& visit) const;
  // Gives memory back that evicted rows have left, in a few shards.
  void PackShards();
  // The keys of the rows in memory, ascending.
  static std::shared_ptr<const std::vector<Key>> HotKeys(const Shard& shard)
      ABSL_SHARED_LOCKS_REQUIRED(shard.mutex);
  // The pages of a shard that have been read so often that they should move onto huge pages.
  static std::vector<char*> PagesToMove(Shard& shard) ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex);
  absl::Status ForeignKey(Key key) const;
  absl::Status ReservedKey(Key key) const;

  const v1::TableSpec spec_;
  const ValueLayout layout_;
  const ShardMap map_;
  const uint32_t rank_;
  const bool tiered_;
  mutable std::atomic<uint64_t> cold_reads_{0};
  std::atomic<uint64_t> evicted_ = 0, expired_ = 0;
  std::vector<std::unique_ptr<Shard>> shards_;  // the vector is constant after construction
};

}  // namespace cistern::server
