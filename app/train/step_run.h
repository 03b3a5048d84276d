// A training that its caller drives step by step: HugeCTR's low-level API in Python, notebooks.
//
//   CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<app::StepRun> run, app::StepRun::Start(...));
//   while (true) {
//     CISTERN_ASSIGN_OR_RETURN(const std::optional<double> loss, run->Step());
//     if (!loss) break;  // the data is over
//   }
//   CISTERN_RETURN_IF_ERROR(run->Stop().status());
//
// It is the training of TrainRun, with the same bits: a thread of its own trains, and waits before
// each step until it is asked for.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "app/fleet/fleet_session.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "worker/model/config/model_config.h"
#include "worker/train/jobs.h"

namespace cistern::app {

struct StepRunOptions {
  std::string out;  // for metrics.jsonl; empty: writes nothing
  int threads = 0;  // 0: all cores
  DeviceKind device = DeviceKind::kCpu;
  // Continues the run that the servers hold: where it stopped in its data, or at the start of other
  // data.
  bool resume = false;
  bool again = false;  // with resume: at the start of the same data, too
};

// Threads: one at a time.
class StepRun {
 public:
  // Connects the training to the tables of `session`, and waits until it is ready for its first
  // step. Errors: those of model, data and servers, and those of Train.
  static absl::StatusOr<std::unique_ptr<StepRun>> Start(model::ModelConfig config,
                                                        std::shared_ptr<FleetSession> session,
                                                        const StepRunOptions& options);
  ~StepRun();
  StepRun(const StepRun&) = delete;
  StepRun& operator=(const StepRun&) = delete;

  // Each asks for something, and waits for it.
  //
  // Trains one batch, with the learning rate given or that of the model's schedule; returns its
  // loss, or nothing once the data is over: the state is then committed. Errors: those of Train.
  absl::StatusOr<std::optional<double>> Step(std::optional<double> learning_rate = {});
  // Evaluates the model as it is now on its eval_source. kFailedPrecondition: the run has ended.
  absl::StatusOr<Progress> Evaluate();
  // Commits the state and ends the run, if it has not ended yet.
  absl::StatusOr<TrainSummary> Stop();

  // The same in two parts, for callers that do something while they wait.
  void Ask(const StepOrder& order);
  // Whether the answer is there, after at most `patience`.
  bool Await(absl::Duration patience);
  // After the answer: whether a step was taken since `iterations` were done.
  absl::StatusOr<bool> HasStepped(uint64_t iterations);

  uint64_t iterations() const;
  double loss() const;  // of the last step
  bool has_ended() const;

 private:
  enum class Turn { kCaller, kTrainer, kEnded };

  StepRun(model::ModelConfig config, std::shared_ptr<FleetSession> session,
          const StepRunOptions& options);
  void Train(const StepRunOptions& options);
  StepOrder BeforeStep(uint64_t iterations, double loss);
  void AwaitAnswer() { Await(absl::InfiniteDuration()); }

  const model::ModelConfig config_;
  const std::shared_ptr<FleetSession> session_;

  mutable absl::Mutex mutex_;
  Turn turn_ ABSL_GUARDED_BY(mutex_) = Turn::kTrainer;
  StepOrder order_ ABSL_GUARDED_BY(mutex_);
  uint64_t iterations_ ABSL_GUARDED_BY(mutex_) = 0;
  double loss_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<Progress> evaluation_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::StatusOr<TrainSummary>> result_ ABSL_GUARDED_BY(mutex_);

  ThreadPool thread_{1};  // last: joined first
};

}  // namespace cistern::app
