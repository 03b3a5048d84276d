#include "server/commit/staging.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "server/commit/dense_rows.h"
#include "server/commit/push_check.h"

namespace cistern::server {
namespace {

std::string Name(uint32_t worker, uint64_t sequence) {
  return absl::StrCat("push ", sequence, " of worker ", worker);
}

}  // namespace

absl::Status Staging::Add(uint32_t worker, uint64_t sequence, StagedPush push,
                          uint64_t byte_limit) {
  uint64_t first_missing = 0;
  const auto stage = workers_.find(worker);
  if (stage != workers_.end()) {
    const auto there = stage->second.pushes.find(sequence);
    if (there != stage->second.pushes.end()) {
      if (there->second.body_hash == push.body_hash) return absl::OkStatus();  // a repeat
      return absl::InvalidArgumentError(
          absl::StrCat(Name(worker, sequence),
                       " arrived twice with different contents: two processes "
                       "run as this worker, or one numbers its pushes wrongly"));
    }
    if (stage->second.sealed) {
      return absl::OutOfRangeError(absl::StrCat(Name(worker, sequence), ": the worker has sealed ",
                                                stage->second.sealed_num, " pushes"));
    }
    first_missing = stage->second.first_missing;
  }
  if (sequence - first_missing >= kWindow) {  // sequence is never below first_missing
    return absl::AbortedError(absl::StrCat(Name(worker, sequence), " is more than ", kWindow,
                                           " ahead of push ", first_missing,
                                           ", the first missing one"));
  }
  const uint64_t bytes = push.bytes();
  if (bytes_ + bytes > byte_limit) {
    return WithOptions(
        absl::ResourceExhaustedError(absl::StrCat(
            "staging holds ", bytes_, " bytes and this push has ", bytes, ", above the limit of ",
            byte_limit, ": make passes smaller, use more servers, or raise the limit")),
        {"cistern-server.staged_limit_mb"});
  }
  Worker& changed = workers_[worker];
  changed.pushes.emplace(sequence, std::move(push));
  bytes_ += bytes;
  while (changed.pushes.count(changed.first_missing) != 0) ++changed.first_missing;
  return absl::OkStatus();
}

absl::Status Staging::Seal(uint32_t worker, uint64_t push_count) {
  const auto found = workers_.find(worker);
  const uint64_t first_missing = found == workers_.end() ? 0 : found->second.first_missing;
  const uint64_t here = found == workers_.end() ? 0 : found->second.pushes.size();
  if (first_missing < push_count) {
    // This happens if the server was restarted and a late call began the pass again.
    return absl::AbortedError(absl::StrCat(Name(worker, first_missing), " is missing: ", here,
                                           " of ", push_count, " have arrived"));
  }
  if (here > push_count) {
    return absl::OutOfRangeError(absl::StrCat("worker ", worker, " seals ", push_count,
                                              " pushes, but ", here, " have arrived"));
  }
  Worker& stage = workers_[worker];
  stage.sealed = true;
  stage.sealed_num = push_count;
  return absl::OkStatus();
}

absl::Status Staging::Check(const TableStore& store, ThreadPool& pool, uint32_t worker_num,
                            uint64_t* rows) const {
  CISTERN_RETURN_IF_ERROR(CheckSealed(worker_num));
  *rows = 0;
  const auto sparse = SparseBlocks(store.sparse_tables().size());
  const auto removals = RemovalBlocks(sparse.size());
  for (size_t t = 0; t < sparse.size(); ++t) {
    const SparseTable& table = *store.sparse_tables()[t];
    std::vector<ValueBlock> pushed = sparse[t];
    pushed.insert(pushed.end(), removals[t].begin(), removals[t].end());
    const std::optional<Key> twice =
        FindDuplicateKey(table.shard_map(), table.local_shard_num(), pushed, pool);
    if (twice.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("table '", table.spec().name(), "': key ", *twice,
                       " was pushed twice in this pass; each key has one owner among the workers"));
    }
    for (const ValueBlock& block : sparse[t]) *rows += block.keys.size();
  }
  for (TableId t = 0; t < store.dense_tables().size(); ++t) {
    CISTERN_ASSIGN_OR_RETURN(const std::vector<DenseRows> written,
                             NewDenseRows(*store.dense_tables()[t], DensePushes(t)));
    for (const DenseRows& part : written) *rows += part.count();
  }
  return absl::OkStatus();
}

RemovedRows Staging::removed() const {
  RemovedRows removed;
  for (const Eviction& eviction : evictions_) {
    for (const Eviction::Shard& shard : eviction.shards) {
      removed.expired += shard.by_bounds.expired;
      removed.evicted += shard.by_bounds.evicted;
    }
  }
  return removed;
}

bool Staging::RemovesRows() const {
  for (const Eviction& eviction : evictions_) {
    for (const Eviction::Shard& shard : eviction.shards) {
      if (!shard.removed.empty()) return true;
    }
  }
  return false;
}

absl::Status Staging::PlanEvictions(const TableStore& store, const DatedPass& pass,
                                    ThreadPool& pool) {
  evictions_.clear();
  days_ = pass.days;
  const auto sparse = SparseBlocks(store.sparse_tables().size());
  for (size_t t = 0; t < sparse.size(); ++t) {
    CISTERN_ASSIGN_OR_RETURN(Eviction eviction,
                             PlanEviction(*store.sparse_tables()[t], pass, sparse[t], pool));
    evictions_.push_back(std::move(eviction));
  }
  return absl::OkStatus();
}

absl::Status Staging::PlanReplicas(const TableStore& store, const DatedPass& pass,
                                   ThreadPool& pool) {
  evictions_.clear();
  days_ = pass.days;
  const auto sparse = SparseBlocks(store.sparse_tables().size());
  const auto removals = RemovalBlocks(sparse.size());
  for (size_t t = 0; t < sparse.size(); ++t) {
    const SparseTable& table = *store.sparse_tables()[t];
    std::vector<std::vector<Key>> removed(removals[t].empty() ? 0 : table.local_shard_num());
    for (const ValueBlock& block : removals[t]) {
      for (const Key key : block.keys) {
        removed[table.shard_map().local_index(table.shard_map().shard(key))].push_back(key);
      }
    }
    for (std::vector<Key>& keys : removed) std::sort(keys.begin(), keys.end());
    CISTERN_ASSIGN_OR_RETURN(Eviction eviction,
                             PlanReplica(table, pass, sparse[t], std::move(removed), pool));
    evictions_.push_back(std::move(eviction));
  }
  return absl::OkStatus();
}

void Staging::Write(TableStore& store, ThreadPool& pool) const {
  const auto sparse = SparseBlocks(store.sparse_tables().size());
  for (size_t t = 0; t < sparse.size(); ++t) {
    SparseTable& table = *store.sparse_tables()[t];
    const Eviction* const removed = eviction(static_cast<TableId>(t));
    if (sparse[t].empty() && (removed == nullptr || removed->shards.empty())) continue;
    table.Write(sparse[t], pool, removed);
  }
  for (TableId t = 0; t < store.dense_tables().size(); ++t) WriteDense(t, *store.dense_tables()[t]);
}

void Staging::WriteDense(TableId id, DenseTable& table) const {
  const auto rows = NewDenseRows(table, DensePushes(id));
  CISTERN_CHECK(rows.ok());  // succeeded in Check
  for (const DenseRows& part : *rows) {
    CISTERN_CHECK(table.Write(part.start(), part.count(), part.values()).ok());
  }
}

std::vector<std::vector<ValueBlock>> Staging::SparseBlocks(size_t table_num) const {
  std::vector<std::vector<ValueBlock>> blocks(table_num);
  for (const auto& [worker, stage] : workers_) {
    for (const auto& [sequence, push] : stage.pushes) {
      if (push.dense || push.removal) continue;
      blocks[push.table].push_back({push.keys, push.values.data(), push.has_embedx.data()});
    }
  }
  return blocks;
}

std::vector<std::vector<ValueBlock>> Staging::RemovalBlocks(size_t table_num) const {
  std::vector<std::vector<ValueBlock>> blocks(table_num);
  for (const auto& [worker, stage] : workers_) {
    for (const auto& [sequence, push] : stage.pushes) {
      if (push.removal) blocks[push.table].push_back({push.keys, nullptr, nullptr});
    }
  }
  return blocks;
}

std::vector<const StagedPush*> Staging::DensePushes(TableId table) const {
  std::vector<const StagedPush*> pushes;
  for (const auto& [worker, stage] : workers_) {
    for (const auto& [sequence, push] : stage.pushes) {
      if (push.dense && push.table == table) pushes.push_back(&push);
    }
  }
  return pushes;
}

absl::Status Staging::CheckSealed(uint32_t worker_num) const {
  for (const auto& [worker, stage] : workers_) {
    if (!stage.sealed) {
      return absl::FailedPreconditionError(absl::StrCat(
          "worker ", worker, " has pushed ", stage.pushes.size(), " times but not sealed"));
    }
  }
  // A late Begin may have opened the pass again on a server that was restarted: what was pushed and
  // sealed is lost. (All keys of workers_ are below worker_num.)
  for (uint32_t worker = 0; worker < worker_num && workers_.size() < worker_num; ++worker) {
    if (workers_.count(worker) != 0) continue;
    return absl::AbortedError(
        absl::StrCat("worker ", worker,
                     " has not sealed on this server: it was restarted; claim a new term "
                     "and resume from the last commit"));
  }
  return absl::OkStatus();
}

}  // namespace cistern::server
