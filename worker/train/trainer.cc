#include "worker/train/trainer.h"

#include <omp.h>

#include <cstdlib>
#include <filesystem>

#include "worker/train/data_source.h"

namespace cistern {
namespace {

Plateau::Rule PlateauRule(const ModelConfig& config) {
  Plateau::Rule rule;
  rule.factor = config.cistern.plateau_factor;
  rule.min_scale = config.cistern.plateau_min_lr / config.optimizer.schedule.base;
  rule.min_gain = config.cistern.plateau_min_gain;
  rule.patience = config.cistern.patience;
  return rule;
}

}  // namespace

Trainer::Trainer(const ModelConfig& config, ParameterClient& client, const JobOptions& options)
    : config_(config),
      client_(client),
      options_(options),
      files_(options.files != nullptr ? *options.files : local_files_),
      plateau_(PlateauRule(config)) {}

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(const ModelConfig& config,
                                                         ParameterClient& client,
                                                         const JobOptions& options) {
  if (options.world_size != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("world_size is ", options.world_size,
                     "; this version trains with one worker: start it with --world_size 1"));
  }
  if (options.threads > 0) omp_set_num_threads(options.threads);
  std::unique_ptr<Trainer> trainer(new Trainer(config, client, options));
  CISTERN_ASSIGN_OR_RETURN(trainer->model_, Model::Create(config, trainer->stream_));
  CISTERN_RETURN_IF_ERROR(client.CreateTables(trainer->model_->schema()));
  CISTERN_RETURN_IF_ERROR(client.ClaimEpoch());
  CISTERN_RETURN_IF_ERROR(trainer->RestoreDense());
  // Only now: a run that the servers refuse leaves the lines of the one before it alone.
  CISTERN_ASSIGN_OR_RETURN(trainer->log_, MetricsLog::Create(options.out_dir, options.progress));
  if (!config.data.eval_source.empty()) {
    trainer->evaluator_ = std::make_unique<Evaluator>(
        config, client, *trainer->model_, std::vector<std::string>{}, config.solver.eval_batches);
  }
  return trainer;
}

absl::Status Trainer::RestoreDense() {
  for (int i = 0; i < model_->schema().dense_tables_size(); ++i) {
    std::vector<float> values = model_->ReadDense(static_cast<size_t>(i));
    const absl::Status pulled = client_.PullDense(static_cast<TableId>(i), values.data());
    if (absl::IsNotFound(pulled)) continue;  // a fresh fleet: the model's first values stand
    CISTERN_RETURN_IF_ERROR(pulled);
    CISTERN_RETURN_IF_ERROR(model_->WriteDense(static_cast<size_t>(i), values));
  }
  return absl::OkStatus();
}

absl::StatusOr<TrainSummary> Trainer::Run() {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<PassSource> source,
                           OpenTrainingData(config_, options_.rank, options_.world_size));
  {
    PassPipeline pipeline(config_, client_, std::move(source));
    std::shared_ptr<ReadyPass> before;
    while (!Stopping()) {
      CISTERN_ASSIGN_OR_RETURN(std::shared_ptr<ReadyPass> ready, pipeline.Next());
      if (ready == nullptr) break;
      if (before != nullptr) CarryOver(*before, *ready);
      before = nullptr;  // its memory is wanted
      CISTERN_RETURN_IF_ERROR(TrainPass(*ready));
      CISTERN_RETURN_IF_ERROR(Commit(*ready));
      if (ready->pass->ends_epoch) CISTERN_RETURN_IF_ERROR(EndEpoch());
      before = std::move(ready);
    }
  }
  Stop(config_.solver.max_iter > 0 ? "max_iter" : "epochs");
  CISTERN_RETURN_IF_ERROR(Finish());
  return summary_;
}

absl::Status Trainer::TrainPass(ReadyPass& ready) {
  std::vector<PassTable*> tables;
  for (const auto& table : ready.tables) tables.push_back(table.get());
  for (const Batch& batch : ready.pass->batches) {
    absl::StatusOr<StepResult> step =
        model_->Train(batch, tables, summary_.iterations + 1, plateau_.scale());
    if (!step.ok()) {
      return AddContext(step.status(), absl::StrCat("iteration ", summary_.iterations + 1));
    }
    ++summary_.iterations;
    summary_.samples += batch.size;
    summary_.loss = step->loss;
    loss_sum_ += step->loss;
    ++loss_count_;
    pass_loss_sum_ += step->loss;
    ++pass_loss_count_;
    CISTERN_RETURN_IF_ERROR(AfterStep(ready));
    if (options_.interrupted != nullptr && options_.interrupted->load()) Stop("interrupt");
    if (Stopping()) return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status Trainer::AfterStep(const ReadyPass& ready) {
  const SolverConfig& solver = config_.solver;
  if (solver.display > 0 && summary_.iterations % solver.display == 0) {
    Progress progress = Now("train");
    progress.loss = loss_sum_ / static_cast<double>(loss_count_);
    loss_sum_ = 0;
    loss_count_ = 0;
    log_->Write(progress);
  }
  if (solver.eval_interval > 0 && summary_.iterations % solver.eval_interval == 0) {
    CISTERN_RETURN_IF_ERROR(EvaluateNow(&ready, "eval"));
  }
  if (solver.snapshot > 0 && summary_.iterations % solver.snapshot == 0 &&
      !options_.out_dir.empty()) {
    CISTERN_RETURN_IF_ERROR(Commit(ready));
    return SaveModel(files_, client_,
                     absl::StrCat(options_.out_dir, "/snapshot-", summary_.iterations));
  }
  return absl::OkStatus();
}

Progress Trainer::Now(const char* event) const {
  Progress progress;
  progress.event = event;
  progress.iter = summary_.iterations;
  progress.samples = summary_.samples;
  progress.lr =
      config_.optimizer.schedule.At(std::max<uint64_t>(summary_.iterations, 1)) * plateau_.scale();
  progress.pass = client_.committed_pass();
  double done = 0;  // fraction of the run, where it is known
  if (config_.solver.max_iter > 0) {
    progress.total_iterations = config_.solver.max_iter;
    done = static_cast<double>(summary_.iterations) / static_cast<double>(config_.solver.max_iter);
  }
  if (epoch_samples_ > 0) {
    progress.epoch = static_cast<double>(summary_.samples) / epoch_samples_;
    if (config_.solver.max_iter == 0) done = *progress.epoch / config_.solver.num_epochs;
  }
  if (done > 0 && done <= 1) progress.seconds_left = log_->seconds() * (1 - done) / done;
  return progress;
}

absl::Status Trainer::EvaluateNow(const ReadyPass* live, const char* event) {
  if (evaluator_ == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        config_.path, ": an evaluation is asked for but layers[0].eval_source is missing"));
  }
  absl::StatusOr<EvalSummary> result = evaluator_->Run(live);
  if (!result.ok()) return AddContext(result.status(), "evaluation");
  summary_.auc = result->auc;
  summary_.logloss = result->logloss;
  scored_iteration_ = summary_.iterations;
  Progress progress = Now(event);
  progress.auc = result->auc;
  progress.logloss = result->logloss;
  progress.unseen_keys = result->unseen_keys;
  log_->Write(progress);
  if (config_.solver.auc_threshold < 1 && result->auc &&
      *result->auc >= config_.solver.auc_threshold) {
    Stop("auc");
  }
  return absl::OkStatus();
}

absl::Status Trainer::Commit(const ReadyPass& ready) {
  CISTERN_RETURN_IF_ERROR(client_.BeginPass());
  uint64_t rows = 0;
  const absl::Status pushed = [&]() -> absl::Status {
    for (size_t e = 0; e < ready.tables.size(); ++e) {
      const PassTable& table = *ready.tables[e];
      rows += table.rows();
      CISTERN_RETURN_IF_ERROR(
          client_.Push(static_cast<TableId>(e), table.keys(), table.values(), table.full()));
    }
    for (int i = 0; i < model_->schema().dense_tables_size(); ++i) {
      CISTERN_RETURN_IF_ERROR(client_.PushDense(static_cast<TableId>(i),
                                                model_->ReadDense(static_cast<size_t>(i)).data()));
    }
    return client_.CommitPass();
  }();
  if (!pushed.ok()) {
    client_.AbortPass().IgnoreError();  // the cause is what the caller has to see
    return AddContext(pushed, absl::StrCat("pass ", client_.committed_pass() + 1));
  }
  ++summary_.passes;
  summary_.rows = rows;
  best_is_last_ = false;
  Progress progress = Now("pass");
  progress.rows = rows;
  if (pass_loss_count_ > 0) {
    progress.loss = pass_loss_sum_ / static_cast<double>(pass_loss_count_);
    pass_loss_sum_ = 0;
    pass_loss_count_ = 0;
  }
  log_->Write(progress);
  return absl::OkStatus();
}

absl::Status Trainer::EndEpoch() {
  ++summary_.epochs;
  epoch_samples_ = static_cast<double>(summary_.samples) / static_cast<double>(summary_.epochs);
  const CisternConfig& rules = config_.cistern;
  if (!rules.eval_every_epoch) return absl::OkStatus();
  CISTERN_RETURN_IF_ERROR(EvaluateNow(nullptr, "eval"));
  // Without an AUC (one class only) the log loss decides.
  const bool best = plateau_.Observe(summary_.auc ? *summary_.auc : -*summary_.logloss);
  if (best && rules.keep_best) {
    if (best_dir_.empty()) {
      best_dir_ = options_.out_dir.empty() ? std::filesystem::temp_directory_path().string() +
                                                 absl::StrCat("/cistern-best-", ::getpid())
                                           : options_.out_dir + "/best";
    }
    CISTERN_RETURN_IF_ERROR(SaveModel(files_, client_, best_dir_));
    best_is_last_ = true;
    best_auc_ = summary_.auc;
    best_logloss_ = summary_.logloss;
  }
  if (plateau_.should_stop()) Stop("patience");
  return absl::OkStatus();
}

absl::Status Trainer::RestoreBest() {
  if (best_dir_.empty()) return absl::OkStatus();
  if (!best_is_last_) {
    CISTERN_RETURN_IF_ERROR(LoadModel(files_, config_, client_, best_dir_));
    CISTERN_RETURN_IF_ERROR(RestoreDense());
  }
  summary_.auc = best_auc_;
  summary_.logloss = best_logloss_;
  std::error_code ignored;  // a leftover folder is no failure of the run
  std::filesystem::remove_all(best_dir_, ignored);
  return absl::OkStatus();
}

absl::Status Trainer::Finish() {
  summary_.interrupted = summary_.stopped_by == "interrupt";
  CISTERN_RETURN_IF_ERROR(RestoreBest());
  if (options_.save_model && !options_.out_dir.empty()) {
    CISTERN_RETURN_IF_ERROR(SaveModel(files_, client_, ModelDir()));
    summary_.model_dir = ModelDir();
  }
  // The best epoch's figures stand, and so do those of an evaluation after the last step.
  const bool scored = !best_dir_.empty() || scored_iteration_ == summary_.iterations;
  if (evaluator_ != nullptr && !summary_.interrupted && !scored) {
    absl::StatusOr<EvalSummary> result = evaluator_->Run(nullptr);
    if (!result.ok()) return AddContext(result.status(), "evaluation");
    summary_.auc = result->auc;
    summary_.logloss = result->logloss;
  }
  summary_.seconds = log_->seconds();
  summary_.samples_per_second = static_cast<double>(summary_.samples) / summary_.seconds;
  Progress progress = Now("final");
  progress.loss = summary_.loss;
  progress.auc = summary_.auc;
  progress.logloss = summary_.logloss;
  progress.rows = summary_.rows;
  log_->Write(progress);
  return absl::OkStatus();
}

absl::StatusOr<TrainSummary> Train(const ModelConfig& config, ParameterClient& client,
                                   const JobOptions& options) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<Trainer> trainer,
                           Trainer::Create(config, client, options));
  return trainer->Run();
}

}  // namespace cistern
