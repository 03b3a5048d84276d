// Shrinks a table and updates its statistics after a save: applies the lifecycle of its accessor
// (common/value/row_lifecycle.h) to every row of a server. In a table without statistics no row is
// removed or changed.
//
// Threads: each call changes committed state shard by shard, under the shards' locks. The caller
// must ensure that no commit, save or load runs at the same time. Work is spread over `pool`; the
// caller must not be one of its threads. The result depends on the rows alone, not on threads or
// their order.
#pragma once

#include <vector>

#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "proto/control_plane.pb.h"
#include "server/table/table_store.h"

namespace cistern::server {

// The rows before the call, and the rows that it removed (in a dry run: would remove).
struct ShrinkTotals {
  uint64_t rows = 0, removed = 0;
};

// OK if `day` can be today for each table of the store (common/value/accessor.h); else
// kInvalidArgument, which names the table and the fix. Call it before each of the calls below, and
// before a save of mode DELTA or BASE.
absl::Status CheckDay(const TableStore& store, uint32_t day);

// Decays every row and removes the rows that are no longer worth keeping; a dry run only counts
// them.
// kDataLoss: a file of a tiered table is corrupt; rows may have been removed.
absl::StatusOr<ShrinkTotals> ShrinkTable(SparseTable& table, uint32_t day, bool dry_run,
                                         ThreadPool& pool);

// Updates the rows after a save of `mode` of exactly this state.
// changed: [local_shard_num], the keys of the rows that changed, ascending; may be null. Of a
// tiered table only those in memory.
void UpdateAfterSave(SparseTable& table, v1::SaveMode mode, uint32_t day, ThreadPool& pool,
                     std::vector<std::vector<Key>>* changed);

}  // namespace cistern::server
