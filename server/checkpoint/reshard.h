// Rewrites a commit for another placement: another number of servers or of shards.
#pragma once

#include <functional>
#include <string>

#include "common/base/thread_pool.h"
#include "common/value/shard_map.h"
#include "server/checkpoint/state_folder.h"

namespace cistern::server {

struct ReshardTotals {
  uint64_t commit = 0, rows = 0, files = 0, bytes = 0;
  bool was_there = false;  // an earlier call finished this; nothing was written
};

// Writes the contents of `commit` (of `from`, which is only read) as the same commit of the state
// folder `to`, in the placement `map`. Row files come first, the manifest last and only if its name
// is free. Whenever the call ends, `to` either has no manifest or is complete; a repeated call
// starts from the beginning.
//
// The rows of one server at a time are in memory. Before the manifest is written, rows and digests
// of every table are compared with the manifest of `from`, and every file is read back.
//
// kAlreadyExists: `to` holds other commits. kFailedPrecondition: a server or another call of
// Reshard uses `to`. kDataLoss: a file of `from` cannot be trusted.
//
// wrote: called for each server whose file is written. schema: the tables of the new state, if they
// are to differ from those of `from` in what changes no row, such as the thresholds of a shrink.
absl::StatusOr<ReshardTotals> Reshard(
    const StateFolder& from, const ParsedManifest& commit, const std::string& to,
    const ShardMap& map, ThreadPool& pool, const std::function<void()>& wrote = [] {},
    const v1::Schema* schema = nullptr);

}  // namespace cistern::server
