// The memory cache of a server: the keys of the rows that were shown most (spec/003 section 1.2).
//
// Each shard of a ctr table keeps a list of its k most shown rows (common/value/cache_share.h),
// chosen when a model is first loaded and again whenever a batch model is saved. Until then the
// list does not change, although shows do. Values are not copied: a reader of the cache gets the
// rows as they are when it reads, and rows that were removed since are left out.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "common/base/thread_pool.h"
#include "common/base/types.h"
#include "server/table/table_store.h"

namespace cistern::server {

// Threads: any thread.
class MemoryCache {
 public:
  using Keys = std::vector<Key>;  // the most shown first; of equal shows, the smaller key first

  // rate: of the rows to keep, above 0 and at most 1; 0: no cache.
  explicit MemoryCache(double rate) : rate_(rate) {}

  bool is_on() const { return rate_ > 0; }
  // Whether the rows were chosen since the last Drop.
  bool is_filled() const;

  // Chooses the rows of all ctr tables, in parallel on `pool`; returns how many. Does nothing if
  // the cache is off. The caller ensures that nothing writes to the tables meanwhile. Memory: 16
  // bytes * rate per row while it runs, then 8.
  uint64_t Fill(const TableStore& store, ThreadPool& pool);
  // Forgets all rows.
  void Drop();

  // The rows of a local shard; null: none were chosen, or the table does not count shows.
  std::shared_ptr<const Keys> Of(TableId table, uint32_t local) const;

 private:
  // By table and local shard; no list for a table that does not count shows.
  using Lists = std::vector<std::vector<std::shared_ptr<const Keys>>>;

  const double rate_;
  mutable absl::Mutex mutex_;
  Lists lists_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cistern::server
