// The state machine of a pass on one server: what is staged, and when it becomes the state.
//
//   READY(c) --Begin(p = c+1)--> OPEN(p) --Seal by each worker, Prepare--> PREPARED(p)
//      ^                            |                                          |
//      |<------- Abort, or a newer epoch is claimed: staging is dropped -------|
//      '------------------------------- Commit: READY(p) <---------------------'
//
// Here the decision to commit is the worker's call; the next version puts a durable delta file into
// Prepare and a manifest before Commit (reference: pass commit protocol), with the same states.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/status.h"
#include "common/thread_pool.h"
#include "common/types.h"
#include "server/table/table_store.h"

namespace cistern {

// One push, decoded and owned. keys/values/full as in a push frame; dense: values only.
struct StagedPush {
  bool dense = false;
  TableId table = 0;
  uint64_t start = 0;           // dense: first row
  std::vector<Key> keys;        // sparse
  std::vector<float> values;    // [count, stride]
  std::vector<uint8_t> full;    // sparse: [count]
  uint64_t body_hash = 0;       // of the frame, to tell a repeat from a clash
};

// Threads: any thread. Commit and Abort exclude everything else; pulls do not come here (they read
// committed state, which no open pass changes).
class PassStage {
 public:
  // store outlives this. byte_limit: staged bytes above it are refused with kResourceExhausted.
  PassStage(TableStore* store, ThreadPool* pool, uint64_t byte_limit);
  ~PassStage();

  PassId committed() const;
  PassId open() const;  // 0: none
  uint64_t staged_bytes() const;

  // OK if pass == committed() + 1. The same pass again drops nothing and is OK (idempotent); any
  // other is kFailedPrecondition that names both.
  absl::Status Begin(PassId pass);

  // Stages one push of (worker, sequence). A repeat with the same body_hash is OK and counts once;
  // with another it is kInvalidArgument. A sequence beyond the next one is accepted only within a
  // window of 1024 (calls in flight overtake each other); holes are found by Seal.
  // kOutOfRange for a foreign or reserved key; kInvalidArgument for NaN or Inf in a value, an
  // unknown table, or a stride that is not the table's.
  absl::Status Push(PassId pass, uint32_t worker, uint64_t sequence, StagedPush push);

  // OK if exactly the sequences 0 .. push_count-1 of `worker` are here; else kOutOfRange that names
  // the first missing one. Idempotent.
  absl::Status Seal(PassId pass, uint32_t worker, uint64_t push_count);

  // Checks that every worker that pushed has sealed and that no key occurs twice in a table
  // (kInvalidArgument that names it). After OK, Commit cannot fail. staged_rows: rows to write.
  absl::Status Prepare(PassId pass, uint64_t* staged_rows);

  // Writes everything staged in (worker, sequence) order; committed() is `pass` afterwards. A repeat
  // for the committed pass is OK. kFailedPrecondition unless prepared.
  absl::Status Commit(PassId pass);

  // Drops the staging of `pass` if it is open. OK whatever the state.
  absl::Status Abort(PassId pass);

  // Drops any staging and makes the state that of `pass` (after Load or Clear).
  void Reset(PassId pass);

 private:
  struct WorkerStage;
  // ... owned by the implementer; keep the members grouped by their guard.
};

}  // namespace cistern
