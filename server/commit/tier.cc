#include "server/commit/tier.h"

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "server/checkpoint/cold_shard.h"
#include "server/checkpoint/dense_section.h"

namespace cistern::server {

Tier::Tier(const Options& options, const ShardMap& map, uint32_t rank, const StateChain* chain,
           ThreadPool* pool)
    : memory_limit_bytes_(options.memory_limit_bytes),
      map_(map),
      rank_(rank),
      chain_(chain),
      pool_(pool) {
  for (const PassCacheOptions& cache : options.pass_caches) {
    pass_caches_.emplace(cache.table, PassCache(cache));
  }
}

absl::StatusOr<Tier::Cold> Tier::OpenCold(const TableStore& store,
                                          const std::vector<v1::RowFile>& chain) {
  std::vector<const ValueLayout*> layouts;
  for (const auto& table : store.sparse_tables()) layouts.push_back(&table->layout());
  StateChain::OpenFiles files;
  std::vector<const RowFileReader*> in_order;
  std::map<const RowFileReader*, std::shared_ptr<const RowFileReader>> owners;
  for (const v1::RowFile& file : chain) {
    const auto open = open_files_.find(file.name());
    std::shared_ptr<const RowFileReader> reader;
    if (open != open_files_.end()) {
      reader = open->second;
    } else {
      CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<RowFileReader> opened,
                               chain_->OpenFile(file, store.schema_hash()));
      CISTERN_RETURN_IF_ERROR(opened->LoadIndex(layouts));
      reader = std::move(opened);
    }
    files[file.name()] = reader;
    in_order.push_back(reader.get());
    owners[reader.get()] = reader;
  }
  Cold cold(layouts.size());
  for (size_t t = 0; t < layouts.size(); ++t) {
    for (uint32_t local = 0; local < store.sparse_tables()[t]->local_shard_num(); ++local) {
      const ShardSections sections =
          SectionsOf(in_order, static_cast<TableId>(t), map_.global_shard(rank_, local));
      std::vector<ColdShard::Run> runs;
      for (size_t i = sections.files.size(); i-- > 0;) {
        runs.push_back({owners[sections.files[i]], sections.sections[i]});
      }
      cold[t].push_back(std::make_shared<ColdShard>(std::move(runs), layouts[t]));
    }
  }
  open_files_ = std::move(files);
  return cold;
}

std::vector<PassCache::Step> Tier::WhatStays(const TableStore& store, const Staging& staging,
                                             absl::Span<const std::vector<ValueBlock>> staged,
                                             float now, uint64_t memory_bytes) {
  const size_t tables = store.sparse_tables().size();
  std::vector<PassCache::Step> stays(tables);
  ScoreHistogram scores(now);  // of all tables
  for (size_t t = 0; t < tables; ++t) {
    const SparseTable& table = *store.sparse_tables()[t];
    if (pass_caches_.empty()) {
      table.AddScores(staged[t], *pool_, now, &scores);
      continue;
    }
    const auto cache = pass_caches_.find(table.spec().name());
    if (cache == pass_caches_.end()) continue;
    ScoreHistogram own(now);
    const PassRows pass = table.AddScores(staged[t], *pool_, now, &own);
    stays[t] = cache->second.Next(pass, own);
  }
  if (!pass_caches_.empty()) return stays;
  const uint64_t limit = memory_limit_bytes_;
  const uint64_t taken = staging.bytes() + memory_bytes;
  const uint64_t room = limit > taken ? limit - taken : 0;
  if (room == 0 && !std::exchange(said_no_room_, true)) {
    LogWarning(absl::StrCat("the memory limit of ", limit,
                            " bytes leaves none for rows: pushes of ", "the pass take ",
                            staging.bytes(), " and what finds rows in files ", memory_bytes,
                            "; every row is read from files: raise the limit, use more servers, or "
                            "make passes smaller"));
  }
  for (PassCache::Step& table : stays) table.cut = ScoreCut(scores, room);
  return stays;
}

void Tier::Write(TableStore& store, const Staging& staging, const v1::Manifest& manifest,
                 const std::vector<std::vector<ShardTotals>>& totals) {
  absl::StatusOr<Cold> cold = OpenCold(store, chain_->FilesOf(manifest));
  if (!cold.ok()) {
    // The commit is decided. Its rows stay in memory until a later one can open the files.
    LogError(absl::StrCat("rows stay in memory: ", std::string(cold.status().message())));
    staging.Write(store, *pool_);
    return;
  }
  const size_t tables = store.sparse_tables().size();
  const auto staged = staging.SparseBlocks(tables);
  const float now = ScoreOfPass(manifest.commit());
  uint64_t memory_bytes = 0;
  for (const auto& shards : *cold) {
    for (const auto& rows : shards) memory_bytes += rows->memory_bytes();
  }
  const std::vector<PassCache::Step> stays = WhatStays(store, staging, staged, now, memory_bytes);
  for (size_t t = 0; t < tables; ++t) {
    SparseTable::Durable commit;
    commit.cold = std::move((*cold)[t]);
    for (const ShardTotals& shard : totals[t]) commit.rows.push_back(shard.rows);
    commit.now = now;
    commit.cut = stays[t].cut;
    commit.admits = stays[t].admits;
    commit.eviction = staging.eviction(static_cast<TableId>(t));
    store.sparse_tables()[t]->WriteDurable(staged[t], commit, *pool_);
  }
  for (TableId t = 0; t < store.dense_tables().size(); ++t) {
    staging.WriteDense(t, *store.dense_tables()[t]);
  }
}

absl::StatusOr<std::vector<std::vector<ShardTotals>>> Tier::Recover(
    TableStore& store, const std::vector<v1::RowFile>& files) {
  CISTERN_ASSIGN_OR_RETURN(Cold cold, OpenCold(store, files));
  std::vector<const RowFileReader*> in_order;
  for (const v1::RowFile& file : files) in_order.push_back(open_files_.at(file.name()).get());
  std::vector<std::vector<ShardTotals>> totals(cold.size());
  for (size_t t = 0; t < cold.size(); ++t) {
    SparseTable& table = *store.sparse_tables()[t];
    totals[t].resize(table.local_shard_num());
    for (uint32_t local = 0; local < table.local_shard_num(); ++local) {
      const ShardSections sections =
          SectionsOf(in_order, static_cast<TableId>(t), map_.global_shard(rank_, local));
      if (!sections.sections.empty()) {
        const RowSection& newest = *sections.sections.back();
        totals[t][local] = {newest.total_rows, newest.digest};
      }
      table.SetCold(local, std::move(cold[t][local]), totals[t][local].rows);
    }
  }
  for (size_t t = 0; t < store.dense_tables().size(); ++t) {
    for (const RowFileReader* file : in_order) {
      CISTERN_RETURN_IF_ERROR(
          TakeDenseSections(*file, static_cast<TableId>(t), *store.dense_tables()[t]));
    }
  }
  return totals;
}

}  // namespace cistern::server
