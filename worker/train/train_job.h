// A training job, from its first claim to its end: determines the start point, and recovers from
// lost servers and workers.
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/client/parameter_client.h"
#include "worker/model/config/model_config.h"
#include "worker/train/jobs.h"
#include "worker/train/metrics_log.h"
#include "worker/train/trainer.h"
#include "worker/train/training_group.h"

namespace cistern {

// When a pass is lost, the job destroys the trainer with its model, its rows and its prepared
// passes. It waits for the servers, claims a new term, which takes all of them back to the last
// durable commit, and starts a new trainer from the position in that commit. Rows and position come
// from one manifest, so the state contains no sample twice and omits none.
//
// Threads: Run once, from one thread.
class TrainJob {
 public:
  TrainJob(const model::ModelConfig& config, ParameterClient& client, const JobOptions& options)
      : config_(config), client_(client), options_(options) {}

  // Errors are those of Train (jobs.h).
  absl::StatusOr<TrainSummary> Run();

 private:
  TrainSummary WithHistory(TrainSummary summary) const;
  // Creates a trainer at the servers' last commit.
  absl::Status Begin();
  // Waits for the other workers, if any, and checks that they run the same job.
  absl::Status GatherGroup();
  absl::Status CheckSameJob();
  group::ProcessGroup* trainers() const {
    return group_ == nullptr ? nullptr : group_->trainers.get();
  }
  bool leads() const { return options_.rank == 0; }
  // Worker 0, for all: claims the servers and determines the start.
  absl::Status Claim();
  absl::Status FollowLeader();
  // Ends the group and the trainer, and interrupts their waiting threads.
  void Disband(const absl::Status& why);
  absl::StatusOr<TrainStart> FirstStart();
  // The start of options.more after the finished run at `position`.
  absl::StatusOr<TrainStart> StartOfMore(const Position& position);
  // Keeps in `next` where the run at `position` is in its stream, if it was on one, and where a
  // stream that it was on before continues, if the new data is that stream. Returns whether the run
  // was on a stream, which never finishes. kInvalidArgument: it is inside a pass.
  absl::StatusOr<bool> LeaveStream(const Position& position, Position* next) const;
  // Imports solver.dense_model_file and sparse_model_file into empty servers.
  absl::Status ReadModelFiles();
  // Fails now, rather than when a snapshot is due, if rows of another run prevent snapshots.
  absl::Status CheckSnapshots();
  // The start after a loss. kFailedPrecondition if another writer has committed meanwhile.
  absl::StatusOr<TrainStart> NextStart() const;
  absl::StatusOr<TrainStart> StartAfter(const Position& position) const;
  absl::Status StartLog(TrainStart& start);
  void WarnOfData();

  // Waits until a new trainer can start. lost: the error that ended the last one.
  absl::Status Recover(const absl::Status& lost);
  absl::Status WaitAndBegin(const absl::Status& lost);
  absl::Status CheckProgress(const absl::Status& lost);
  const char* Awaited() const {
    return options_.world_size > 1 ? "the servers and the other workers" : "the servers";
  }
  // Sleeps; false if interrupted.
  bool Sleep(absl::Duration time) const;
  bool interrupted() const {
    return options_.interrupted != nullptr && options_.interrupted->load();
  }
  void Report(report::RunEvent event, const std::string& message);

  const model::ModelConfig& config_;
  ParameterClient& client_;
  const JobOptions options_;
  LocalFileSystem local_files_;
  v1::Schema schema_;
  std::unique_ptr<MetricsLog> log_;
  std::unique_ptr<DeviceContext> device_;  // shared by successive trainers
  std::unique_ptr<TrainingGroup> group_;   // null for a single worker
  std::unique_ptr<Trainer> trainer_;
  TrainStart start_;          // the start of the job
  TrainStart last_start_;     // the start of trainer_
  bool has_claimed_ = false;  // or attempted to
  bool began_ = false;        // start_ is set
  bool gathered_ = false;     // all workers have joined once
  bool reading_files_ = false;
  uint64_t first_commit_ = 0;  // the newest commit when the job started
  uint64_t term_ = 0;          // the newest term that this job claimed and used
  uint64_t recoveries_ = 0;
  uint64_t commit_of_loss_ = 0, losses_ = 0;  // consecutive losses without a newer commit
};

}  // namespace cistern
