#include "app/train/step_run.h"

#include <new>
#include <utility>

namespace cistern::app {

absl::StatusOr<std::unique_ptr<StepRun>> StepRun::Start(model::ModelConfig config,
                                                        std::shared_ptr<FleetSession> session,
                                                        const StepRunOptions& options) {
  std::unique_ptr<StepRun> run(new StepRun(std::move(config), std::move(session), options));
  run->AwaitAnswer();
  CISTERN_RETURN_IF_ERROR(run->HasStepped(0).status());
  return run;
}

StepRun::StepRun(model::ModelConfig config, std::shared_ptr<FleetSession> session,
                 const StepRunOptions& options)
    : config_(std::move(config)), session_(std::move(session)) {
  thread_.Run([this, options] { Train(options); });
}

StepRun::~StepRun() {
  Stop().IgnoreError();
}

void StepRun::Train(const StepRunOptions& options) {
  JobOptions job;
  job.out_dir = options.out;
  job.save_model = false;
  job.device = options.device;
  job.threads = options.threads;
  job.resume = job.more = options.resume;
  job.again = options.again;
  job.before_step = [this](uint64_t iterations, double loss) {
    return BeforeStep(iterations, loss);
  };
  job.progress = [this](const Progress& progress) {
    if (progress.event != report::RunEvent::kEval) return;
    absl::MutexLock lock(&mutex_);
    evaluation_ = progress;
  };
  absl::StatusOr<TrainSummary> result = absl::UnknownError("");
  try {
    result = cistern::Train(config_, session_->client(), job);
  } catch (const std::bad_alloc&) {
    result = absl::ResourceExhaustedError("there is not enough memory");
  }
  absl::MutexLock lock(&mutex_);
  if (result.ok()) {
    iterations_ = result->iterations;
    loss_ = result->loss;
  }
  result_ = std::move(result);
  turn_ = Turn::kEnded;
}

StepOrder StepRun::BeforeStep(uint64_t iterations, double loss) {
  absl::MutexLock lock(&mutex_);
  iterations_ = iterations;
  loss_ = loss;
  turn_ = Turn::kCaller;
  auto is_asked = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return turn_ == Turn::kTrainer; };
  mutex_.Await(absl::Condition(&is_asked));
  return order_;
}

void StepRun::Ask(const StepOrder& order) {
  absl::MutexLock lock(&mutex_);
  if (turn_ != Turn::kCaller) return;
  order_ = order;
  evaluation_.reset();
  turn_ = Turn::kTrainer;
}

bool StepRun::Await(absl::Duration patience) {
  absl::MutexLock lock(&mutex_);
  auto has_answered = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return turn_ != Turn::kTrainer; };
  return mutex_.AwaitWithTimeout(absl::Condition(&has_answered), patience);
}

absl::StatusOr<bool> StepRun::HasStepped(uint64_t iterations) {
  absl::MutexLock lock(&mutex_);
  if (result_ && !result_->ok()) return result_->status();
  return iterations_ > iterations;
}

absl::StatusOr<std::optional<double>> StepRun::Step(std::optional<double> learning_rate) {
  const uint64_t before = iterations();
  Ask({StepOrder::kStep, learning_rate});
  AwaitAnswer();
  CISTERN_ASSIGN_OR_RETURN(const bool stepped, HasStepped(before));
  return stepped ? std::optional(loss()) : std::nullopt;
}

absl::StatusOr<Progress> StepRun::Evaluate() {
  Ask({StepOrder::kEvaluate, {}});
  AwaitAnswer();
  absl::MutexLock lock(&mutex_);
  if (result_ && !result_->ok()) return result_->status();
  if (evaluation_) return *evaluation_;
  return absl::FailedPreconditionError("the run has ended: evaluate its committed state");
}

absl::StatusOr<TrainSummary> StepRun::Stop() {
  AwaitAnswer();  // to what Ask has asked for before
  Ask({StepOrder::kStop, {}});
  AwaitAnswer();
  absl::MutexLock lock(&mutex_);
  return *result_;
}

uint64_t StepRun::iterations() const {
  absl::MutexLock lock(&mutex_);
  return iterations_;
}

double StepRun::loss() const {
  absl::MutexLock lock(&mutex_);
  return loss_;
}

bool StepRun::has_ended() const {
  absl::MutexLock lock(&mutex_);
  return turn_ == Turn::kEnded;
}

}  // namespace cistern::app
