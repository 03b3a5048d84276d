// Rows beyond memory: the files of the newest commit hold all rows, memory those that many passes
// had. A row leaves memory only when a durable commit has it in a file.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/thread_pool.h"
#include "server/checkpoint/shard_rows.h"
#include "server/commit/pass_cache.h"
#include "server/commit/staging.h"
#include "server/commit/state_chain.h"
#include "server/table/table_store.h"

namespace cistern::server {

// Threads: one at a time.
class Tier {
 public:
  struct Options {
    uint64_t memory_limit_bytes = 0;  // 0: every row stays in memory
    // If there are any, they say what stays in memory, and tables without one stay whole.
    std::vector<PassCacheOptions> pass_caches = {};
  };
  // chain, pool: outlive this.
  Tier(const Options& options, const ShardMap& map, uint32_t rank, const StateChain* chain,
       ThreadPool* pool);

  // Whether tables are tiered at all; if not, the calls below must not be made.
  static bool IsUsed(const Options& options) {
    return options.memory_limit_bytes > 0 || !options.pass_caches.empty();
  }

  // The files that rows are read from.
  const StateChain::OpenFiles& open_files() const { return open_files_; }

  // Writes a pass to the tables at a durable commit.
  // manifest: of the commit. totals: the rows after it, by [table][local shard].
  void Write(TableStore& store, const Staging& staging, const v1::Manifest& manifest,
             const std::vector<std::vector<ShardTotals>>& totals);
  // Makes `files` what the tables of `store` consist of; reads dense tables only. Returns the
  // totals of their rows. kDataLoss: a file is corrupt.
  absl::StatusOr<std::vector<std::vector<ShardTotals>>> Recover(
      TableStore& store, const std::vector<v1::RowFile>& files);

 private:
  using Cold = std::vector<std::vector<std::shared_ptr<const ColdRows>>>;  // [table][local shard]
  // Opens the files of `chain`, those that are not open yet, and closes all others. kDataLoss: a
  // file is corrupt.
  absl::StatusOr<Cold> OpenCold(const TableStore& store, const std::vector<v1::RowFile>& chain);
  // What stays in memory of each table. staged: what the pass writes. memory_bytes: what finds rows
  // in files.
  std::vector<PassCache::Step> WhatStays(const TableStore& store, const Staging& staging,
                                         absl::Span<const std::vector<ValueBlock>> staged,
                                         float now, uint64_t memory_bytes);

  const uint64_t memory_limit_bytes_;
  const ShardMap map_;
  const uint32_t rank_;
  const StateChain* const chain_;
  ThreadPool* const pool_;
  StateChain::OpenFiles open_files_;
  bool said_no_room_ = false;                     // the log says that no row is in memory
  std::map<std::string, PassCache> pass_caches_;  // by table; empty: one limit for all
};

}  // namespace cistern::server
