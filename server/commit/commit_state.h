// The state machine of a pass on one server: what is staged, and when it is committed.
//
//   READY(c) --Begin(p = c+1)--> OPEN(p) --Seal by each worker, Prepare--> PREPARED(p)
//      ^                            |                                          |
//      |<------- Abort, or a newer term is claimed: staging is dropped --------|
//      '------------------------------- Commit: READY(p) <---------------------'
//
// It owns all that a commit is made of: what is staged (staging.h) and, where commits are durable,
// the files, manifests and changes in place of this server (durable_state.h). The states are the
// same in memory only.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "common/base/types.h"
#include "proto/schema.pb.h"
#include "server/commit/durable_state.h"
#include "server/commit/staged_push.h"
#include "server/table/table_store.h"

namespace cistern::server {

// The maximum number of workers of a pass: each costs a server a little memory.
inline constexpr uint32_t kMaxWorkers = 1u << 16;

// Threads: any thread. Commit and Abort exclude everything else. Pulls do not pass through here:
// they read committed state, which no open pass changes. Values are checked outside the lock.
// committed(), open() and staged_bytes() wait for nothing.
class CommitState {
 public:
  // store outlives this. byte_limit: pushes that would exceed it are refused with
  // kResourceExhausted.
  CommitState(TableStore* store, ThreadPool* pool, uint64_t byte_limit);
  ~CommitState();

  // Makes commits durable; once, before any other thread uses this. Recovers the newest commit.
  absl::Status Attach(std::unique_ptr<DurableState> durable);
  // Null: commits in memory only.
  DurableState* durable() const { return durable_.get(); }

  PassId committed() const;
  PassId open() const;  // 0: none
  uint64_t staged_bytes() const;
  uint64_t staged_limit_bytes() const { return byte_limit_; }

  // OK if pass == committed() + 1. A repeated call for the same pass is OK and drops nothing
  // (idempotent). An earlier pass is kFailedPrecondition; a later one, or one before Recovered, is
  // kAborted; both messages name the two passes. worker_num: ranks 0 .. worker_num - 1 push, and
  // every one of them seals; kFailedPrecondition if it differs from that of the open pass,
  // kInvalidArgument above kMaxWorkers.
  //
  // replica: the pass makes the tables those of another fleet after its pass of this number, which
  // may be any later one. Pushed rows keep their last pass, pushes may remove rows, and the bounds
  // of tables remove none. kFailedPrecondition: the pass is open, but not as such.
  absl::Status Begin(PassId pass, uint32_t worker_num = 1, bool replica = false);

  // Stages one push of (worker, sequence). A repeat with the same body_hash is OK and counts once;
  // with another hash it is kInvalidArgument. A sequence ahead of the next one is accepted only
  // within a window of 1024 (calls in flight overtake each other); Seal finds the holes. A refused
  // push leaves no trace.
  // kOutOfRange: a foreign or reserved key, or a row outside the server's range. kInvalidArgument:
  // a worker that is not in the pass, NaN or Inf in a value, an unknown table, a stride that
  // differs from the table's, a `has_embedx` other than 0 or 1, gradients for a dense table without
  // a rule, a removal in a pass that is not a replica. kResourceExhausted: above the byte limit.
  //
  // This method and those below: kAborted if the pass is still to come but not open (this server
  // was restarted and has lost what was staged); kFailedPrecondition if the pass is over.
  absl::Status Push(PassId pass, uint32_t worker, uint64_t sequence, StagedPush push);

  // OK if exactly the sequences 0 .. push_count-1 of `worker` are staged; else kAborted, which
  // names the first missing one. Idempotent.
  absl::Status Seal(PassId pass, uint32_t worker, uint64_t push_count);

  struct PrepareOrder {
    Term term = 0;           // of the caller
    bool durable = false;    // writes a row file; requires durable()
    v1::PassDays days = {};  // up to the pass, for tables that expire rows by day
  };
  struct Prepared {
    uint64_t rows = 0;      // to write
    RemovedRows removed;    // by the commit, because of the tables' bounds
    v1::PreparedPart part;  // of a durable commit: the files and totals for the manifest
  };
  // Checks the pass, and computes or writes what its commit needs (DurableState::Prepare). After
  // OK, Commit cannot fail. The checks:
  //
  //   Every worker has sealed. Otherwise the error names one: kFailedPrecondition if it has pushed,
  //   kAborted if not (this server was restarted and then got a late Begin).
  //
  //   No key occurs twice in a table, and no row twice in a dense table; else kInvalidArgument,
  //   which names it. Gradients of a row may repeat and are summed (dense_rows.h).
  //
  //   The days are possible (common/value/pass_days.h), and there if a table expires rows by day;
  //   else kInvalidArgument.
  //
  //   Where commits are durable, so is that of a replica; else kInvalidArgument.
  //
  // A repeated call gets the same answer; it writes nothing, unless it is the first that is
  // durable. kFailedPrecondition: it has other days.
  absl::Status Prepare(PassId pass, const PrepareOrder& order, Prepared* prepared);
  bool IsPrepared(PassId pass) const;

  // Writes everything staged in (worker, sequence) order; afterwards committed() is `pass`, and the
  // tables have the clock and the days of Prepare. A repeated call for the committed pass is OK.
  // kFailedPrecondition unless prepared. commit: the number of the decided manifest that holds the
  // pass; 0: in memory only. *adopted: false if this server did not prepare what the manifest
  // names, or was restarted since: nothing was written, and it must recover instead.
  absl::Status Commit(PassId pass, uint64_t commit, const v1::StepClock& clock, bool* adopted);

  // Drops the staging of `pass` if it is open. OK in any state.
  absl::Status Abort(PassId pass);

  // Drops any staging and makes `pass` the committed one (after Load or Clear).
  void Reset(PassId pass);
  // Brings the tables to the newest commit on disk, and drops what is staged. A writer may still be
  // working on passes up to that one; they were lost, not committed, so calls for them are
  // kAborted.
  absl::Status Recover();
  // Makes the pass that was recovered the committed one.
  void Recovered(PassId pass);

  // Records a change in place (DurableState::Changed); does nothing in memory only.
  void Changed(uint64_t before, const std::vector<std::vector<std::vector<Key>>>* keys);
  // As DurableState::CheckChanges; OK in memory only.
  absl::Status CheckChanges(uint64_t changes) const;
  // kUnavailable while memory holds an uncommitted change: a load, a shrink.
  absl::Status CheckCommitted() const;

 private:
  // Writes what is staged to the tables and makes `pass` the committed one. commit: 0: in memory.
  absl::Status WriteStaged(PassId pass, uint64_t commit, const v1::StepClock& clock);
  absl::Status CheckOpen(PassId pass) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status CheckWorker(uint32_t worker) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // The error for a call about `pass`: kAborted if the pass was lost with this server's memory,
  // else kFailedPrecondition.
  absl::Status WrongPass(PassId pass, bool lost, const std::string& what) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void AwaitIdle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Clears busy_ at the end of a scope, even if memory runs out inside.
  class BusyScope;
  // Makes the state READY(pass) and returns the staging, which the caller frees without the lock.
  [[nodiscard]] std::unique_ptr<Staging> Close(PassId pass) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The same for a pass that does not commit: removes its rows that Prepare placed, unseen, in the
  // tables.
  [[nodiscard]] std::unique_ptr<Staging> Drop(PassId pass) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  TableStore* const store_;
  ThreadPool* const pool_;
  const uint64_t byte_limit_;
  std::unique_ptr<DurableState> durable_;  // null: in memory only

  mutable absl::Mutex mutex_;
  // Prepare and Commit run for seconds. They set busy_, release the lock, and own staging_ until
  // they clear busy_; every other call that changes the state waits for that.
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  PassId committed_ ABSL_GUARDED_BY(mutex_) = 0;
  PassId recovered_ ABSL_GUARDED_BY(mutex_) = 0;  // the pass read from disk; 0: none
  PassId open_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t worker_num_ ABSL_GUARDED_BY(mutex_) = 1;  // of the open pass
  bool replica_ ABSL_GUARDED_BY(mutex_) = false;     // the open pass is one
  bool prepared_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t prepared_rows_ ABSL_GUARDED_BY(mutex_) = 0;
  RemovedRows prepared_removed_ ABSL_GUARDED_BY(mutex_);
  uint64_t staged_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<Staging> staging_ ABSL_GUARDED_BY(mutex_);  // never null
};

}  // namespace cistern::server
