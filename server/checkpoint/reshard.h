// A commit rewritten for another placement: another number of servers, other shards.
#pragma once

#include <functional>
#include <string>

#include "common/base/thread_pool.h"
#include "common/value/shard_map.h"
#include "server/checkpoint/state_folder.h"

namespace cistern {

struct ReshardTotals {
  uint64_t commit = 0, rows = 0, files = 0, bytes = 0;
  bool was_there = false;  // an earlier call had finished this: nothing was written
};

// Writes what `commit` (of `from`, which is only read) holds as the same commit of the state folder
// `to`, in the placement `map`: row files first, the manifest last and only if its name is free. So
// whenever it ends, `to` either has no manifest or is whole; called again it begins anew.
//
// One server's rows at a time are in memory. Rows and digests of every table were compared with the
// manifest, and every file was read back, before the manifest is written.
//
// kAlreadyExists: `to` holds other commits. kFailedPrecondition: a server uses `to`, or another
// call of this. kDataLoss: a file of `from` that cannot be trusted.
//
// wrote: called for each server whose file is written.
absl::StatusOr<ReshardTotals> Reshard(
    const StateFolder& from, const ParsedManifest& commit, const std::string& to,
    const ShardMap& map, ThreadPool& pool, const std::function<void()>& wrote = [] {});

}  // namespace cistern
