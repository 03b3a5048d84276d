// A training job from its first claim to its end: where it begins, and how it goes on after a
// server was lost.
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

// A trainer that loses a pass is thrown away with its model, its rows and the passes it had made
// ready. The job waits for the servers, claims a new epoch, which takes them all back to the last
// durable commit, and starts another trainer from the position in that commit. Rows and position
// come from one manifest, so no sample is trained twice into the state, and none is left out.
//
// Threads: Run once, from one thread.
class TrainJob {
 public:
  TrainJob(const ModelConfig& config, ParameterClient& client, const JobOptions& options)
      : config_(config), client_(client), options_(options) {}

  // Errors are those of Train (jobs.h).
  absl::StatusOr<TrainSummary> Run();

 private:
  TrainSummary WithHistory(TrainSummary summary) const;
  // Makes a trainer that stands at the servers' last commit.
  absl::Status Begin();
  // Waits for the other workers, if there are any, and checks that they run the same job.
  absl::Status GatherGroup();
  absl::Status CheckSameJob();
  ProcessGroup* trainers() const { return group_ == nullptr ? nullptr : group_->trainers.get(); }
  bool leads() const { return options_.rank == 0; }
  // What the servers are told, and what they say of the start; by worker 0 for all.
  absl::Status Claim();
  absl::Status FollowLeader();
  // Ends the group and the trainer, whatever their threads wait for.
  void Disband(const absl::Status& why);
  absl::StatusOr<TrainStart> FirstStart();
  // solver.dense_model_file and sparse_model_file, into servers that hold nothing.
  absl::Status ReadModelFiles();
  // A snapshot that rows of another run will not let be written is refused now, not when it is due.
  absl::Status CheckSnapshots();
  // After a loss. kFailedPrecondition if another writer has committed in the meantime.
  absl::StatusOr<TrainStart> NextStart() const;
  absl::StatusOr<TrainStart> StartAfter(const Position& position) const;
  absl::Status StartLog(TrainStart& start);

  // Waits until a trainer can begin again; `lost` is why the last one could not go on.
  absl::Status Recover(const absl::Status& lost);
  absl::Status WaitAndBegin(const absl::Status& lost);
  absl::Status CheckProgress(const absl::Status& lost);
  const char* Awaited() const {
    return options_.world_size > 1 ? "the servers and the other workers" : "the servers";
  }
  // Sleeps; false if the user does not want to wait.
  bool Sleep(absl::Duration time) const;
  bool interrupted() const {
    return options_.interrupted != nullptr && options_.interrupted->load();
  }
  void Tell(const char* event, const std::string& message);

  const ModelConfig& config_;
  ParameterClient& client_;
  const JobOptions options_;
  LocalFileSystem local_files_;
  v1::Schema schema_;
  std::unique_ptr<MetricsLog> log_;
  std::unique_ptr<DeviceContext> device_;  // of every trainer
  std::unique_ptr<TrainingGroup> group_;   // of several workers
  std::unique_ptr<Trainer> trainer_;
  TrainStart start_;          // of the job
  TrainStart last_start_;     // of trainer_
  bool has_claimed_ = false;  // or tried to
  bool began_ = false;        // start_ is known
  bool gathered_ = false;     // all workers have once been there
  bool reading_files_ = false;
  uint64_t first_commit_ = 0;  // newest one when the job began
  uint64_t epoch_ = 0;         // newest one that this job claimed and used
  uint64_t recoveries_ = 0;
  uint64_t commit_of_loss_ = 0, losses_ = 0;  // losses in a row with this newest commit
};

}  // namespace cistern
