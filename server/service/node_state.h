// The state that the handlers of one server share.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/synchronization/mutex.h"
#include "common/base/secret.h"
#include "common/base/thread_pool.h"
#include "server/commit/commit_state.h"
#include "server/service/identity_guard.h"
#include "server/service/refusal_log.h"
#include "server/service/run_secrets.h"
#include "server/service/server_counters.h"
#include "server/service/writer_lease.h"
#include "server/table/memory_cache.h"
#include "server/table/table_store.h"

namespace cistern::server {

// Two locks order the calls. Lock order: job_mutex, tables_mutex, CommitState's, a shard's.
//
// Every call holds tables_mutex shared from its identity check to its end, so no claim falls
// between the two: what an older term was allowed to do is done before a newer term begins. A
// change of that identity (a claim, new tables, the begin and the end of a replacement) holds it
// exclusively, for a moment.
//
// job_mutex admits one long job at a time that reads or replaces committed state as a whole:
// commit, save, digests, load, clear. Load and clear set `replacing` instead of holding
// tables_mutex: other calls return kUnavailable and do not block gRPC's threads.
struct NodeState {
  NodeState(const ShardMap& map, uint32_t server_rank, const std::string& cluster, int threads,
            uint64_t staged_limit_bytes, double cache_rate = 0, bool tiered = false)
      : rank(server_rank),
        guard(cluster, map),
        pool(threads),
        store(map, server_rank, tiered),
        cache(cache_rate),
        stage(&store, &pool, staged_limit_bytes) {}

  const uint32_t rank;
  const uint64_t boot = NewSecret();  // identifies this process, so that callers notice a restart
  IdentityGuard guard;
  WriterLease lease;  // changes with guard's term, under tables_mutex
  ThreadPool pool;    // for commit, save and load: work over many shards

  absl::Mutex job_mutex ABSL_ACQUIRED_BEFORE(tables_mutex);
  absl::Mutex tables_mutex;
  bool replacing ABSL_GUARDED_BY(tables_mutex) = false;
  TableStore store;   // used under one of the locks above
  MemoryCache cache;  // of the store; filled under job_mutex
  CommitState stage;

  RunSecrets run_secrets;
  RefusalLog refusals;
  ServerCounters counters;

  // kUnavailable while the tables are being replaced.
  absl::Status CheckTables() const ABSL_SHARED_LOCKS_REQUIRED(tables_mutex) {
    if (!replacing) return absl::OkStatus();
    return absl::UnavailableError("this server is loading or clearing its tables; retry soon");
  }
  // Chooses the rows of the memory cache, if it is on, from the tables. Under job_mutex. The reason
  // is for the log.
  void FillCache(absl::string_view reason);
  // Runs `replace`, which replaces committed state, for a caller whose identity passes `check`;
  // meanwhile every other call returns kUnavailable, and clients retry it.
  absl::Status Replace(const std::function<absl::Status()>& check,
                       const std::function<absl::Status()>& replace)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(job_mutex);
  // CheckTables, then the identity of a call.
  absl::Status Check(const CallIdentity& theirs) const ABSL_SHARED_LOCKS_REQUIRED(tables_mutex) {
    CISTERN_RETURN_IF_ERROR(CheckTables());
    return guard.Check(theirs, store.schema_hash());
  }
  // The same for a call that writes, which must also show the writer's secret.
  absl::Status CheckWriter(const v1::Identity& theirs) const
      ABSL_SHARED_LOCKS_REQUIRED(tables_mutex) {
    CISTERN_RETURN_IF_ERROR(Check(IdentityOf(theirs)));
    return lease.Check(theirs.secret());
  }
};

}  // namespace cistern::server
