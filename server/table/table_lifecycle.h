// Shrinks of a table, and what a save does to it: common/value/ctr_lifecycle.h for every row of a
// server.
//
// Tables of the embedding accessor have no statistics: nothing of them is removed or changed.
//
// Threads: each call changes committed state shard by shard, under the shards' locks; the caller
// sees to it that no commit, save or load runs beside it. Work is spread over `pool`, of which the
// caller is not a thread. The result depends on the rows alone, not on threads or on their order.
#pragma once

#include <vector>

#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "proto/control_plane.pb.h"
#include "server/table/table_store.h"

namespace cistern {

// Rows before, and those that were removed or, in a dry run, would be.
struct ShrinkTotals {
  uint64_t rows = 0, removed = 0;
};

// OK if `day` can be today for each table of the store (common/value/ctr_lifecycle.h); else
// kInvalidArgument with the table and what to do. Ask before each of the calls below, and before a
// save of mode DELTA or BASE.
absl::Status CheckDay(const TableStore& store, uint32_t day);

// Fades every row and removes those that are no longer worth keeping; a dry run only counts them.
ShrinkTotals ShrinkTable(SparseTable& table, uint32_t day, bool dry_run, ThreadPool& pool);

// Does to the rows what follows a save of `mode` of exactly this state.
// changed: [local_shard_num], the keys of the rows that are not as before, ascending; may be null.
void UpdateAfterSave(SparseTable& table, v1::SaveMode mode, uint32_t day, ThreadPool& pool,
                     std::vector<std::vector<Key>>* changed);

}  // namespace cistern
