// The training loop of one worker.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/client/parameter_client.h"
#include "worker/model/config/model_config.h"
#include "worker/model/graph/model.h"
#include "worker/pass/data_source.h"
#include "worker/pass/pass_pipeline.h"
#include "worker/train/best_state.h"
#include "worker/train/evaluator.h"
#include "worker/train/jobs.h"
#include "worker/train/metrics_log.h"
#include "worker/train/pass_committer.h"
#include "worker/train/plateau.h"
#include "worker/train/position.h"
#include "worker/train/train_start.h"
#include "worker/train/training_group.h"

namespace cistern {

// For each pass: takes its rows, trains each batch, evaluates where the model asks for it, and
// commits rows and position together.
//
// The commit of a pass runs beside the training of the next one (pass_committer.h). Work that needs
// the committed rows waits for it: an evaluation, a snapshot, the end of an epoch with an
// evaluation, the end of the run. All other work of a pass follows its last step, so that a trainer
// that starts after a commit completes the work that its predecessor did not finish.
//
// Threads: Run once, from one thread.
class Trainer {
 public:
  // client: has the tables of `config` and is their only writer. device: trains the model. group:
  // null for a single worker. log: already started at `start`. All must outlive the trainer.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(
      const ModelConfig& config, ParameterClient& client, const JobOptions& options,
      const TrainStart& start, DeviceContext& device, TrainingGroup* group, MetricsLog& log);
  ~Trainer() { stops_feed_ = true; }
  // After an error with IsLostPass, a new trainer can continue (TrainJob).
  absl::StatusOr<TrainSummary> Run();

 private:
  Trainer(const ModelConfig& config, ParameterClient& client, const JobOptions& options,
          const TrainStart& start, DeviceContext& device, TrainingGroup* group, MetricsLog& log);

  // Loads the servers' dense parameters, if they hold any.
  absl::Status RestoreDense();
  // Does the work that an earlier trainer or process may have left undone after its commit.
  absl::Status ApplyDeferred();
  absl::Status TrainPasses();
  // Whether this worker wants the run to end.
  bool IsStopped() const;
  // While a stream has no samples: finishes the commit in flight once it is done, so that its lines
  // and a loss are not late.
  absl::Status AwaitStream();
  // Writes what the stream has to say.
  void WriteFeedNotes();
  // The next pass with all its rows, those of `before` carried over; null at the end of the data.
  absl::StatusOr<std::shared_ptr<ReadyPass>> NextPass(const ReadyPass* before);
  // Trains the batches of a pass until the run stops; returns the number of trained batches.
  absl::StatusOr<size_t> TrainPass(ReadyPass& ready);
  // The factor on the learning rate of the next step. With before_step: waits for an order to take
  // a step, and may stop the run instead.
  absl::StatusOr<double> AwaitOrder(const ReadyPass& ready);
  // Whether an action after this iteration needs the state right after it.
  bool IsMilestone(uint64_t iteration) const;
  // Takes the result of the oldest running step.
  absl::Status FinishStep(size_t samples);
  // Writes the lines and runs the evaluations that are due at this iteration.
  absl::Status AfterStep(const ReadyPass& ready);
  absl::Status EvaluateNow(const ReadyPass* live);
  // The end of a pass whose first `trained` batches are trained: starts its commit, with the
  // position, and does the work that follows. Waits for the previous commit first.
  absl::Status EndPass(std::shared_ptr<ReadyPass> ready, size_t trained);
  // Makes the rows of tables with 16-bit rows what these will store, before the next pass takes
  // them over.
  void RoundRows(const Position& position, ReadyPass& ready);
  absl::StatusOr<Position> PositionAfter(const ReadyPass& ready, size_t trained);
  // Adds the kernels of this process to those of the run, and warns if they differ.
  void NoteProductKernels(Position* next) const;
  absl::Status StartCommit(std::shared_ptr<ReadyPass> ready, const Position& position, bool durable,
                           bool all_rows);
  // Whether a commit must push rows, too, that the next pass holds. All workers answer the same.
  // needed: NeedsCommit.
  bool NeedsAllRows(bool needed, bool durable) const;
  // Chooses the rows that the commit of `pass` leaves out, and counts them in kept_rows_.
  absl::Status KeepRows(FrozenPass& pass);
  // Waits for the commit in flight, if any: afterwards the servers are at committed_. The wait
  // counts as idle.
  absl::Status FinishCommit();
  // Whether the run needs the commit of a pass before it can go on.
  bool NeedsCommit(const Position& next, const data::Pass& pass) const;
  // The number of distinct keys of a pass, over all workers.
  absl::StatusOr<uint64_t> RowsOf(const ReadyPass& ready);
  // Whether a signal asks any worker to stop; all workers check at the same iterations.
  absl::StatusOr<bool> Interrupted(uint64_t iteration);
  // Worker 0 does the work, and all wait.
  absl::Status AsLeader(const std::function<absl::Status()>& work) {
    return Lead(trainers(), work);
  }
  ProcessGroup* trainers() const { return group_ == nullptr ? nullptr : group_->trainers.get(); }
  bool leads() const { return group_ == nullptr || group_->trainers->leads(); }
  // The line of the last pass; starts a new period of idle_.
  Progress PassLine();
  // Adds the rows that the last commit has removed, if any table has bounds that remove rows. (The
  // line of a pass that a resumed run writes, because a crash came between commit and line, lacks
  // them: no file has them.)
  void AddRemovedRows(Progress* pass) const;
  // The work that follows the commit of a pass. again: an earlier trainer may have done it.
  absl::Status AfterPass(bool again);
  // At the end of an epoch, before its commit: cistern.calibrate.
  absl::Status Calibrate(const ReadyPass& live);
  // At the end of an epoch: evaluation, learning rate, patience, best state.
  absl::Status EndEpoch();
  absl::Status SaveSnapshot(bool only_if_missing);
  absl::Status SaveHugectrFiles();
  // Makes the best epoch's state the final one.
  absl::Status EndWithBest();
  absl::Status RestoreBest();
  absl::Status Finish();
  // Gathers what the workers have read and left out.
  absl::Status GatherCounts();
  // Of the time between the first step and the last commit.
  IdleTimes IdleShares() const;
  BusyTime Busy() const;
  TrainSummary Summary() const;

  bool Stopping() const { return at_.stopped_by != StopReason::kNone; }
  bool LimitReached() const {
    return config_.solver.max_iter > 0 && at_.iterations >= config_.solver.max_iter;
  }
  void Stop(StopReason reason) {
    if (!Stopping()) at_.stopped_by = reason;
  }
  Progress Now(RunEvent event) const;
  std::string ModelDir() const { return options_.out_dir + "/model"; }

  std::atomic<bool> stops_feed_{false};  // the data is not needed any more
  data::FeedStatus feed_status_;         // of cistern.stream
  data::BadData bad_data_;               // what the source of pipeline_ leaves out
  data::ReadCounts read_counts_;         // of that source
  // Once training has ended: of all workers.
  std::optional<data::BadData::Counts> skipped_data_;
  std::vector<uint64_t> decoded_bytes_;
  const ModelConfig& config_;
  ParameterClient& client_;
  const JobOptions options_;
  const TrainStart start_;
  MetricsLog& log_;
  LocalFileSystem local_files_;
  FileSystem& files_;
  DeviceContext& device_;
  TrainingGroup* const group_;
  RowStage stage_;
  std::unique_ptr<Model> model_;
  PassMemory pass_memory_;
  std::unique_ptr<Evaluator> evaluator_;  // null: the model never evaluates
  // Scores the passes of a stream before they are trained; null: nobody asks.
  std::unique_ptr<Evaluator> stream_scorer_;
  double label_entropy_ = 0;  // of the last evaluation: the log loss of the share of positives
  Plateau plateau_;
  BestState best_;
  Position at_;                         // now, but cursor and plateau as of the last pass
  Position committed_;                  // as of the last commit
  PassId pass_;                         // the last pass, committed or being committed
  std::optional<PassId> best_to_keep_;  // once a durable commit names it
  bool best_is_last_ = false;           // the servers hold the best epoch's state now
  std::string model_dir_;               // the folder of the saved model; empty: not saved
  // The beginning of this object, its first step, the last line of a pass, and the last commit.
  SteadyTime begin_, first_step_, last_pass_, trained_;
  IdleTimes idle_, idle_before_;  // since last_pass_, and before it since first_step_
  double busy_seconds_ = 0, busy_seconds_before_ = 0;  // of the same two periods
  // The rows that the last commit left out, over all workers, and those of all commits.
  uint64_t kept_rows_ = 0, kept_rows_in_all_ = 0;
  std::unique_ptr<PassPipeline> pipeline_;  // while passes are trained
  struct InFlight {
    Position position;
    bool durable = false;
  };
  std::optional<InFlight> in_flight_;  // the commit of committer_
  PassCommitter committer_;            // last: it calls pipeline_
};

}  // namespace cistern
