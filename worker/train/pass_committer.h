// Commits passes on a thread of its own, while the next pass trains.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "common/trace/trace_file.h"
#include "worker/client/parameter_client.h"
#include "worker/group/process_group.h"
#include "worker/model/batch/row_stage.h"
#include "worker/model/layer/dense_snapshot.h"
#include "worker/pass/pass_pipeline.h"

namespace cistern {

// What a pass has trained, as of its last step. Nothing of it changes any more.
struct FrozenPass {
  std::shared_ptr<const ReadyPass> rows;  // the device has finished updating them
  // By embedding: distinct rows that are not pushed, because the next pass holds them and pushes
  // them later. No entry, or null: all rows are pushed.
  std::vector<std::shared_ptr<const std::vector<Row>>> staying;
  model::DenseSnapshot* dense = nullptr;   // of the last step; null: nothing dense is pushed
  ParameterClient::CommitOptions options;  // position, durability, clock
};

// One commit at a time: push, seal, prepare, decide, commit, together with the other workers. While
// a commit is in flight, this object's thread is the only one that calls the pass verbs of the
// client or changes its state; other threads may call Pull.
//
// Threads: Start, Wait and the accessors from one thread.
class PassCommitter {
 public:
  // device: holds the rows. group: the workers of the run (null: a single worker), used only by
  // this object's thread. trace: shows each commit; null: none. All must outlive this object.
  PassCommitter(ParameterClient& client, DeviceContext& device, group::ProcessGroup* group,
                TraceFile* trace = nullptr);
  // Waits for the commit in flight, whatever its result.
  ~PassCommitter();

  // Starts to commit `pass`. No commit may be in flight: call Wait first. committed: called on this
  // object's thread once the servers hold the pass; not called after an error.
  void Start(FrozenPass pass, std::function<void()> committed);
  // Whether Start was called and Wait was not.
  bool in_flight() const { return in_flight_; }
  // Whether Wait would return at once.
  bool has_result() const;
  // Waits for the commit in flight, frees its rows, and returns its result; OK if there is none.
  //
  // After an error, the pass is not committed unless IsLostPass: then the manifest decides. Other
  // errors have aborted the pass.
  absl::Status Wait();
  // As ParameterClient::TakeRestarted, for commits that Wait has returned.
  std::vector<std::string> TakeRestarted() { return std::exchange(restarted_, {}); }

 private:
  absl::Status Commit(const FrozenPass& pass);
  absl::Status PushAll(const FrozenPass& pass);
  // Pushes the rows of a table except `staying`.
  absl::Status PushLeaving(TableId id, const model::PassTable& table,
                           absl::Span<const Row> staying);
  bool leads() const { return group_ == nullptr || group_->leads(); }

  ParameterClient& client_;
  group::ProcessGroup* const group_;
  TraceFile* const trace_;
  model::RowStage stage_;
  bool in_flight_ = false;
  std::vector<std::string> restarted_;

  mutable absl::Mutex mutex_;
  bool has_result_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status result_ ABSL_GUARDED_BY(mutex_);
  ThreadPool thread_{1};  // last: its destructor waits for a commit, which uses all members above
};

// Whether `status` means a lost pass that can be trained again from the last durable commit: a
// server is unreachable, or was restarted and has lost its staged pushes.
bool IsLostPass(const ParameterClient& client, const absl::Status& status);

}  // namespace cistern
