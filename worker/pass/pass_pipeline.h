// Prepares the next pass while the current one trains: read, deduplicate, pull. On a GPU that
// trains alone, where these take longer than training, a second thread reads the pass after it
// meanwhile.
//
// A key of pass n + 1 that is also in pass n must not be pulled early: its value changes until the
// last update of n. Such rows are carried over on the device when n ends; which they are is known
// once n + 1 is read. All other rows are pulled from committed state once pass n - 1 is committed,
// whether n is committed or not: n does not change them, and servers know already which of them its
// commit will remove (a bounded table).
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "common/trace/trace_file.h"
#include "worker/client/parameter_client.h"
#include "worker/data/source/batch.h"
#include "worker/data/source/pass_source.h"
#include "worker/group/process_group.h"
#include "worker/model/batch/pass_table.h"
#include "worker/model/batch/row_stage.h"
#include "worker/model/config/model_config.h"
#include "worker/pass/idle_times.h"

namespace cistern {

// A pass with its rows. After CarryOver the tables are complete.
struct ReadyPass {
  std::unique_ptr<data::Pass> pass;
  std::vector<std::unique_ptr<model::PassTable>> tables;  // by embedding
  // The rows of keys that the previous pass also holds: in its table (from) and in this one (to).
  struct Carried {
    std::vector<Row> from, to;
  };
  using CarriedRows = std::vector<Carried>;  // by embedding
  CarriedRows carried;
  PrepareTimes times;
};

// Copies the carried rows from `before`, on which the device has finished its work.
absl::Status CarryOver(const ReadyPass& before, model::RowStage& stage, ReadyPass& now);

// Threads: one thread calls Next, any thread the others; the pipeline has threads of its own.
class PassPipeline {
 public:
  // config, client, device, group (that of `source`; may be null) and trace (shows how each pass
  // was prepared; may be null) must outlive this object. Only the pipeline's reading thread uses
  // source and group. The destructor blocks while that thread waits for the group, until the group
  // is interrupted. reads_ahead: whether a pass is read while the rows of the one before it are
  // pulled; not set: on a GPU that trains alone. A CPU would only take time from training, and
  // memory. Several workers read the same number of passes: one that stopped while the others read
  // on would leave them waiting for the group.
  PassPipeline(const model::ModelConfig& config, ParameterClient& client, DeviceContext& device,
               group::ProcessGroup* group, std::unique_ptr<data::PassSource> source,
               TraceFile* trace = nullptr, std::optional<bool> reads_ahead = std::nullopt);
  ~PassPipeline();

  // Waits for the next pass; null at the end of the data. The pass that follows it is prepared from
  // now on: its data at once, its rows when the previously returned pass is committed.
  // idle: increased by the time of the wait.
  absl::StatusOr<std::shared_ptr<ReadyPass>> Next(IdleTimes* idle);
  // The rows that the pass after the last returned one shares with that one. Null if that pass is
  // not read yet, or has an error, or there is none. Valid while the caller holds it.
  std::shared_ptr<const ReadyPass::CarriedRows> SharedWithNext() const;
  // Whether Next would not wait, after at most `patience`.
  bool IsReady(absl::Duration patience);
  // From any thread, once for each returned pass, in order: the servers hold it now.
  void Committed();

 private:
  // A pass without its rows; null behind the last one.
  struct ReadPass {
    std::unique_ptr<data::Pass> pass;
    SteadyTime begin, end;
  };
  // The loops of the two threads.
  void ReadAll();
  void PullAll();
  absl::StatusOr<ReadPass> ReadNext();
  // Pulls the rows of pass `index`, which follows `before` (null for the first).
  absl::StatusOr<std::shared_ptr<ReadyPass>> Prepare(uint64_t index, absl::StatusOr<ReadPass> got,
                                                     const ReadyPass* before);
  // Waits until the rows of pass `index` (0, 1, ...) may be pulled; kCancelled if stopping.
  absl::Status AwaitCommits(uint64_t index);
  // The spans of a pass that was read from `begin` to `end`, and whose shared rows were searched
  // from `search` on.
  void Trace(PassId pass, SteadyTime begin, SteadyTime end, SteadyTime search,
             const PrepareTimes& times) const;
  // Finds the rows that pass `index` shares with `before`, and returns the others, by embedding;
  // does nothing without `before`.
  std::vector<std::vector<Row>> FindMissing(uint64_t index, const ReadyPass* before,
                                            const std::shared_ptr<ReadyPass>& now);
  // Pulls the rows of a new table of `now`, or, if it shares any, the rows `missing`.
  absl::Status PullMissing(size_t embedding, PassId pass, absl::Span<const Row> missing,
                           ReadyPass& now);

  const model::ModelConfig& config_;
  ParameterClient& client_;
  DeviceContext& device_;
  group::ProcessGroup* const group_;
  const PassId first_pass_;  // the number of pass 0 of this pipeline
  const std::unique_ptr<data::PassSource> source_;
  TraceFile* const trace_;
  const bool reads_ahead_;
  model::RowStage stage_;  // used by the thread that pulls

  mutable absl::Mutex mutex_;
  // What the reading thread hands over: whether there is a pass, and the pass, an error or the end.
  bool read_filled_ ABSL_GUARDED_BY(mutex_) = false;
  absl::StatusOr<ReadPass> read_ ABSL_GUARDED_BY(mutex_);
  bool pulling_ ABSL_GUARDED_BY(mutex_) = false;    // the rows of a pass that was read
  uint64_t returned_ ABSL_GUARDED_BY(mutex_) = 0;   // number of passes that Next has returned
  uint64_t committed_ ABSL_GUARDED_BY(mutex_) = 0;  // number of returned passes that are committed
  // What pass `shared_index_` shares with the one before it; null before the second pass.
  uint64_t shared_index_ ABSL_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<const ReadyPass::CarriedRows> shared_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool filled_ ABSL_GUARDED_BY(mutex_) = false;  // slot_ holds a pass, an error or the end
  absl::StatusOr<std::shared_ptr<ReadyPass>> slot_ ABSL_GUARDED_BY(mutex_);
  ThreadPool threads_{2};  // last: its destructor waits for both loops, which use the members above
};

}  // namespace cistern
