// The state machine of a pass on one server: what is staged, and when it becomes the state.
//
//   READY(c) --Begin(p = c+1)--> OPEN(p) --Seal by each worker, Prepare--> PREPARED(p)
//      ^                            |                                          |
//      |<------- Abort, or a newer epoch is claimed: staging is dropped -------|
//      '------------------------------- Commit: READY(p) <---------------------'
//
// What makes a pass durable (server/commit/durable_state.h) takes part in Prepare and Commit by
// functions that are called with what is staged; the states are the same without it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/synchronization/mutex.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "common/base/types.h"
#include "server/commit/staged_push.h"
#include "server/table/table_store.h"

namespace cistern {

class Staging;

// The most workers that a pass is begun for: each costs a server a little memory.
inline constexpr uint32_t kMaxWorkers = 1u << 16;

// Threads: any thread. Commit and Abort exclude everything else; pulls do not come here (they read
// committed state, which no open pass changes). Values are checked outside the lock, and
// committed(), open() and staged_bytes() wait for nothing.
class PassStage {
 public:
  // store outlives this. byte_limit: staged bytes above it are refused with kResourceExhausted.
  PassStage(TableStore* store, ThreadPool* pool, uint64_t byte_limit);
  ~PassStage();

  PassId committed() const;
  PassId open() const;  // 0: none
  uint64_t staged_bytes() const;

  // OK if pass == committed() + 1. The same pass again drops nothing and is OK (idempotent); an
  // earlier one is kFailedPrecondition, a later one, or one before Recovered, kAborted, that names
  // both. worker_num: ranks 0 .. worker_num - 1 push, and every one of them seals;
  // kFailedPrecondition for another number than the open pass has, kInvalidArgument above
  // kMaxWorkers.
  absl::Status Begin(PassId pass, uint32_t worker_num = 1);

  // Stages one push of (worker, sequence). A repeat with the same body_hash is OK and counts once;
  // with another it is kInvalidArgument. A sequence beyond the next one is accepted only within a
  // window of 1024 (calls in flight overtake each other); holes are found by Seal.
  // kOutOfRange for a foreign or reserved key or a row outside the server's range; kInvalidArgument
  // for a worker that is not of the pass, NaN or Inf in a value, an unknown table, a stride that is
  // not the table's, or a `full` that is not 0 or 1, gradients for a dense table without a rule;
  // kResourceExhausted above the byte limit. A refused push leaves no trace.
  //
  // This and the verbs below: kAborted if the pass is not open though it is to come (this server
  // was restarted and has lost what was staged); kFailedPrecondition if it is over.
  absl::Status Push(PassId pass, uint32_t worker, uint64_t sequence, StagedPush push);

  // OK if exactly the sequences 0 .. push_count-1 of `worker` are here; else kAborted that names
  // the first missing one. Idempotent.
  absl::Status Seal(PassId pass, uint32_t worker, uint64_t push_count);

  // Checks that every worker of the pass has sealed (else, that names one, kFailedPrecondition if
  // it has pushed, and kAborted if not: this server was restarted and told to begin again), and
  // that no key occurs twice in a table and no row in a dense table (kInvalidArgument that names
  // it; gradients of a row may, and are summed: dense_rows.h), and then what `write` says of it
  // (null: nothing to ask). After OK, Commit cannot fail.
  // staged_rows: rows to write. A repeat is OK and does not call `write` again, unless `again` says
  // that what it would write is another thing now.
  using Look = std::function<absl::Status(const Staging&)>;
  absl::Status Prepare(PassId pass, uint64_t* staged_rows, const Look& write = nullptr,
                       const std::function<bool()>& again = nullptr);
  bool IsPrepared(PassId pass) const;

  // Writes everything staged in (worker, sequence) order and then calls `written` with it (null:
  // nothing to call); committed() is `pass` afterwards. A repeat for the committed pass is OK.
  // kFailedPrecondition unless prepared.
  absl::Status Commit(PassId pass, const std::function<void(const Staging&)>& written = nullptr);

  // Drops the staging of `pass` if it is open. OK whatever the state.
  absl::Status Abort(PassId pass);

  // Drops any staging and makes the state that of `pass` (after Load or Clear).
  void Reset(PassId pass);
  // The same after the state was read from disk. Passes up to this one may have been opened by
  // somebody who still goes on with them, so that they are not over but lost: kAborted.
  void Recovered(PassId pass);

 private:
  absl::Status CheckPush(const StagedPush& push) const;
  absl::Status CheckSparse(const StagedPush& push) const;
  absl::Status CheckDense(const StagedPush& push) const;
  absl::Status CheckOpen(PassId pass) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status CheckWorker(uint32_t worker) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Why `pass` is not to be worked on: it was lost with this server's memory, or it is over.
  absl::Status WrongPass(PassId pass, bool lost, const std::string& what) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status CheckRoom(const StagedPush& push) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void AwaitIdle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends busy_ with its scope, also where memory ran out in it.
  class BusyScope;
  // Makes the state READY(pass) and returns the staging, to be freed without the lock.
  [[nodiscard]] std::unique_ptr<Staging> Close(PassId pass) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The same of what does not commit: tables may hold some of it already, unseen.
  [[nodiscard]] std::unique_ptr<Staging> Drop(PassId pass) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  TableStore* const store_;
  ThreadPool* const pool_;
  const uint64_t byte_limit_;

  mutable absl::Mutex mutex_;
  // Prepare and Commit work for seconds. They set busy_, let go of the lock, and own staging_ until
  // they clear it; every other verb waits for that.
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  PassId committed_ ABSL_GUARDED_BY(mutex_) = 0;
  PassId recovered_ ABSL_GUARDED_BY(mutex_) = 0;  // what was read from disk; 0: nothing
  PassId open_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t worker_num_ ABSL_GUARDED_BY(mutex_) = 1;  // of the open pass
  bool prepared_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t prepared_rows_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t staged_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<Staging> staging_ ABSL_GUARDED_BY(mutex_);  // never null
};

}  // namespace cistern
