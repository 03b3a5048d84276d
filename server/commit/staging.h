// The pushes of one pass to one server, held until they are committed or dropped.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "server/commit/staged_push.h"
#include "server/table/table_store.h"

namespace cistern::server {

// Tracks the push sequences of each worker, finds repeats and holes, and yields the values in the
// order in which they are written.
//
// Threads: one at a time; CommitState guards it.
class Staging {
 public:
  // How far a push may be ahead of the first missing one.
  static constexpr uint64_t kWindow = 1024;

  uint64_t bytes() const { return bytes_; }

  // Adds a push. OK without effect if it is a repeat: (worker, sequence) is staged with the same
  // hash. kInvalidArgument if it is staged with another one, kAborted if it is beyond the window,
  // kOutOfRange if it is beyond the number that its worker sealed, kResourceExhausted if bytes()
  // would exceed byte_limit.
  absl::Status Add(uint32_t worker, uint64_t sequence, StagedPush push, uint64_t byte_limit);

  // CommitState::Seal without the check of the pass.
  absl::Status Seal(uint32_t worker, uint64_t push_count);

  // CommitState::Prepare without the check of the pass.
  absl::Status Check(const TableStore& store, ThreadPool& pool, uint32_t worker_num,
                     uint64_t* rows) const;
  // Decides what `pass` removes from bounded tables (server/table/eviction.h). Call it after Check.
  absl::Status PlanEvictions(const TableStore& store, const DatedPass& pass, ThreadPool& pool);
  // The same for a pass that replicates another fleet's: what was pushed as removed goes, and no
  // other row.
  absl::Status PlanReplicas(const TableStore& store, const DatedPass& pass, ThreadPool& pool);
  // Those of the pass that PlanEvictions was called with.
  const v1::PassDays& days() const { return days_; }
  // What PlanEvictions has decided for a table; null before that.
  const Eviction* eviction(TableId table) const {
    return table < evictions_.size() ? &evictions_[table] : nullptr;
  }
  // The number of rows of all tables that they remove because of bounds.
  RemovedRows removed() const;
  // Whether they remove any row.
  bool RemovesRows() const;
  // The keys that shard `local` of a table loses, ascending.
  absl::Span<const Key> RemovedFrom(TableId table, size_t local) const {
    const Eviction* const plan = eviction(table);
    if (plan == nullptr || plan->shards.empty()) return {};
    return plan->shards[local].removed;
  }

  // Writes everything in (worker, sequence) order, and removes what the evictions say. Check must
  // have succeeded.
  void Write(TableStore& store, ThreadPool& pool) const;
  // The part of Write for dense table `id`.
  void WriteDense(TableId id, DenseTable& table) const;

  // The sparse pushes of each table without removals, and the dense pushes of one table, in
  // (worker, sequence) order.
  std::vector<std::vector<ValueBlock>> SparseBlocks(size_t table_num) const;
  std::vector<const StagedPush*> DensePushes(TableId table) const;

 private:
  // As SparseBlocks, for removals: keys alone.
  std::vector<std::vector<ValueBlock>> RemovalBlocks(size_t table_num) const;

  struct Worker {
    std::map<uint64_t, StagedPush> pushes;  // by sequence
    uint64_t first_missing = 0;
    bool sealed = false;
    uint64_t sealed_num = 0;
  };

  // OK if workers 0 .. worker_num - 1 have sealed; kFailedPrecondition if one has pushed but not
  // sealed, kAborted if one has done neither.
  absl::Status CheckSealed(uint32_t worker_num) const;

  std::map<uint32_t, Worker> workers_;
  std::vector<Eviction> evictions_;  // by table
  v1::PassDays days_;
  uint64_t bytes_ = 0;
};

}  // namespace cistern::server
