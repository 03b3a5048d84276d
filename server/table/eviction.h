// What the bounds of a table (v1.TableBounds) remove at a commit.
//
// The commit of pass n removes the rows that were due after pass n - 1, unless pass n has pushed
// them. So which rows go is known one commit ahead, from committed state alone. That is what lets a
// worker prepare pass n + 1 while pass n trains: a row that is due and not in pass n is absent for
// pass n + 1, whether pass n is committed yet or not (SparseTable::Pull).
//
// After a commit of pass n, these rows of a shard are due:
//   expired   their last pass is at most n + 1 - expire_passes, or was committed expire_days before
//             pass n or earlier (common/value/pass_days.h)
//   evicted   of the others, those with the smallest measure, as many as the shard has above its
//             share of max_rows
// Equal measures: the older row goes first, then the order of the mixed keys decides, which favours
// no slot. All this depends on the rows of the shard and on n, not on servers, threads or order.
// A table holds at most max_rows rows and those of its last pass.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "common/base/types.h"
#include "common/value/value_layout.h"
#include "proto/checkpoint.pb.h"
#include "server/table/value_block.h"

namespace cistern::server {

class SparseTable;

// Rows of one shard that the next commit removes unless its pass has them.
struct DueRows {
  std::vector<Key> keys;         // ascending
  std::vector<uint8_t> expired;  // [keys]: 1 if expired, 0 if evicted
  bool Has(Key key) const;
};

// Rows that commits removed because of the bounds of their tables.
struct RemovedRows {
  uint64_t evicted = 0;  // above max_rows
  uint64_t expired = 0;  // past expire_passes or expire_days
};

// Which rows of a table one commit removes.
struct Eviction {
  struct Shard {
    std::vector<Key> removed;            // ascending; a key need not exist
    RemovedRows by_bounds;               // of removed; the writer has removed the others itself
    std::shared_ptr<const DueRows> due;  // after the commit
  };
  PassId pass = 0;
  std::vector<Shard> shards;  // by local shard; empty: no row goes, and the table has no bounds
};

// The most rows of a shard after a commit, apart from those of the commit's pass; UINT64_MAX
// without max_rows.
uint64_t ShareOfShard(const v1::TableBounds& bounds, uint32_t shard_num, ShardIndex shard);

// A pass, and the days of all passes up to it; no days if no table expires rows by day.
struct DatedPass {
  PassId pass = 0;
  v1::PassDays days = {};
};

// The eviction of the commit of `pass`, which writes `blocks`; empty without bounds. Reads every
// row of the table, unless none can be due. No other thread writes the table. kDataLoss: a file of
// a tiered table is corrupt.
absl::StatusOr<Eviction> PlanEviction(const SparseTable& table, const DatedPass& pass,
                                      absl::Span<const ValueBlock> blocks, ThreadPool& pool);

// The same for a commit that replicates another fleet's (CommitState::Begin): the rows of `removed`
// go and no others, and what is due afterwards is decided from all rows. removed: by local shard,
// ascending, none of them written; empty: none.
absl::StatusOr<Eviction> PlanReplica(const SparseTable& table, const DatedPass& pass,
                                     absl::Span<const ValueBlock> blocks,
                                     std::vector<std::vector<Key>> removed, ThreadPool& pool);

// Decides what is due after `pass`, from all rows of the table: after a recovery. Errors as above.
absl::Status FindDue(SparseTable& table, const DatedPass& pass, ThreadPool& pool);

}  // namespace cistern::server
