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
#include "worker/train/data_counts.h"
#include "worker/train/evaluator.h"
#include "worker/train/jobs.h"
#include "worker/train/metrics_log.h"
#include "worker/train/pass_committer.h"
#include "worker/train/plateau.h"
#include "worker/train/position.h"
#include "worker/train/run_times.h"
#include "worker/train/stream_scorer.h"
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
      const model::ModelConfig& config, ParameterClient& client, const JobOptions& options,
      const TrainStart& start, DeviceContext& device, TrainingGroup* group, MetricsLog& log);
  ~Trainer() { stops_feed_ = true; }
  // After an error with IsLostPass, a new trainer can continue (TrainJob).
  absl::StatusOr<TrainSummary> Run();

 private:
  Trainer(const model::ModelConfig& config, ParameterClient& client, const JobOptions& options,
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
  // Before training on other data than before: warns if its labels seem to be inverted.
  absl::Status CheckLabels();
  // The end of a pass whose first `trained` batches are trained: starts its commit, with the
  // position, and does the work that follows. Waits for the previous commit first.
  absl::Status EndPass(std::shared_ptr<ReadyPass> ready, size_t trained);
  absl::StatusOr<Position> PositionAfter(const ReadyPass& ready, size_t trained);
  absl::Status StartCommit(std::shared_ptr<ReadyPass> ready, const Position& position, bool durable,
                           bool all_rows);
  // Whether a commit must push rows, too, that the next pass holds. All workers answer the same.
  // needed: NeedsCommit.
  bool NeedsAllRows(bool needed, bool durable) const;
  // Chooses the rows that the commit of `pass` leaves out, and counts them in kept_rows_.
  absl::Status KeepRows(FrozenPass& pass);
  // Waits for the commit in flight, if any: afterwards the servers are at last_commit_. The wait
  // counts as idle.
  absl::Status FinishCommit();
  // Whether the run needs the commit of a pass before it can go on.
  bool NeedsCommit(const Position& next, const data::Pass& pass) const;
  // Whether a signal asks any worker to stop; all workers check at the same iterations.
  absl::StatusOr<bool> Interrupted(uint64_t iteration);
  // Worker 0 does the work, and all wait.
  absl::Status AsLeader(const std::function<absl::Status()>& work) {
    return group::Lead(trainers(), work);
  }
  group::ProcessGroup* trainers() const {
    return group_ == nullptr ? nullptr : group_->trainers.get();
  }
  bool leads() const { return group_ == nullptr || group_->trainers->leads(); }
  // The line of the last pass; its time ends now.
  Progress PassLine();
  // Adds the rows that the last commit has removed, if any table has bounds that remove rows. (The
  // line of a pass that a resumed run writes, because a crash came between commit and line, lacks
  // them: no file has them.)
  void AddRemovedRows(Progress* pass) const;
  // The work that follows the commit of a pass. again: an earlier trainer may have done it.
  absl::Status AfterPass(bool again);
  // At the end of an epoch, before its commit: cistern.calibrate.
  absl::Status Calibrate(const ReadyPass& live);
  // At the end of a pass of a stream, before its commit.
  absl::Status CalibrateStream(const ReadyPass& ready, Position* next);
  // At the end of an epoch: evaluation, learning rate, patience, best state.
  absl::Status EndEpoch();
  // Makes the best epoch's state the final one.
  absl::Status EndWithBest();
  absl::Status RestoreBest();
  absl::Status Finish();
  TrainSummary Summary() const;

  bool Stopping() const { return at_.stopped_by != report::StopReason::kNone; }
  bool LimitReached() const {
    return config_.solver.max_iter > 0 && at_.iterations >= config_.solver.max_iter;
  }
  void Stop(report::StopReason reason) {
    if (!Stopping()) at_.stopped_by = reason;
  }
  Progress Now(report::RunEvent event) const;
  // The folder of the saved model; empty: it is not saved.
  std::string ModelDir() const {
    return options_.save_model && !options_.out_dir.empty() ? options_.out_dir + "/model" : "";
  }

  const model::ModelConfig& config_;
  ParameterClient& client_;
  const JobOptions options_;
  const TrainStart start_;
  MetricsLog& log_;
  LocalFileSystem local_files_;
  FileSystem& files_;
  DeviceContext& device_;
  TrainingGroup* const group_;
  model::RowStage stage_;
  std::unique_ptr<model::Model> model_;
  PassMemory pass_memory_;
  std::unique_ptr<Evaluator> evaluator_;  // null: the model never evaluates
  // Of the passes of a stream; null: there is none, or no pass can be scored.
  std::unique_ptr<StreamScorer> stream_scorer_;
  double label_entropy_ = 0;  // of the last evaluation: the log loss of the share of positives
  Plateau plateau_;
  BestState best_;
  RunTimes times_;
  Position at_;  // now, but cursor and plateau as of the last pass
  PassId pass_;  // the last pass, committed or being committed
  struct Commit {
    Position position;
    bool durable = false;
  };
  Commit last_commit_;  // done or in flight
  // The rows that the last commit left out, over all workers, and those of all commits.
  uint64_t kept_rows_ = 0, kept_rows_in_all_ = 0;
  std::atomic<bool> stops_feed_{false};     // the data is not needed any more
  data::FeedStatus feed_status_;            // of cistern.stream
  DataCounts counts_;                       // of the source of pipeline_
  std::unique_ptr<PassPipeline> pipeline_;  // while passes are trained
  std::optional<model::DenseSnapshot>
      dense_;                // of the commit in flight; unset before the first one
  PassCommitter committer_;  // last: it calls pipeline_ and reads dense_
};

}  // namespace cistern
