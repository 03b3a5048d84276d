#include "worker/train/trainer.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/cross_entropy.h"
#include "common/value/schema.h"
#include "worker/export/hugectr/hugectr_model.h"
#include "worker/report/score_detail.h"
#include "worker/train/monitored_value.h"

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

// Scores would need the updates that are deferred.
bool DefersUpdates(const ModelConfig& config) {
  return std::any_of(config.embeddings.begin(), config.embeddings.end(),
                     [](const EmbeddingConfig& embedding) {
                       return embedding.optimizer.rule.update_type != UpdateType::kLocal;
                     });
}

PassScore PassScoreOf(const EvalSummary& scored) {
  PassScore pass;
  pass.score = {scored.auc, scored.logloss, scored.metrics};
  pass.samples = scored.samples;
  pass.auc_error = scored.auc_error;
  if (scored.scores != nullptr) pass.calibration_ratio = scored.scores->calibration_ratio();
  return pass;
}

}  // namespace

Trainer::Trainer(const ModelConfig& config, ParameterClient& client, const JobOptions& options,
                 const TrainStart& start, DeviceContext& device, TrainingGroup* group,
                 MetricsLog& log)
    : config_(config),
      client_(client),
      options_(options),
      start_(start),
      log_(log),
      files_(options.files != nullptr ? *options.files : local_files_),
      device_(device),
      group_(group),
      stage_(device),
      plateau_(PlateauRule(config), start.position.plateau),
      best_(files_, options.out_dir),
      at_(start.position),
      committed_(start.position),
      pass_(client.committed_pass()),
      begin_(std::chrono::steady_clock::now()),
      first_step_(begin_),
      last_pass_(begin_),
      trained_(begin_),
      committer_(client, device, group == nullptr ? nullptr : group->committers.get(),
                 options.trace) {}

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(
    const ModelConfig& config, ParameterClient& client, const JobOptions& options,
    const TrainStart& start, DeviceContext& device, TrainingGroup* group, MetricsLog& log) {
  std::unique_ptr<Trainer> trainer(new Trainer(config, client, options, start, device, group, log));
  trainer->at_.config = TrainingValues(config);
  if (trainer->leads()) trainer->at_.data_samples = SamplesOfEpoch(config).value_or(0);
  CISTERN_ASSIGN_OR_RETURN(
      trainer->model_,
      Model::Create(config, device, group == nullptr ? nullptr : group->steps.get()));
  if (SchemaHash(client.schema()) != SchemaHash(trainer->model_->schema())) {
    return absl::FailedPreconditionError(
        "the servers hold other tables than the model has: another writer replaced them, or the "
        "model file changed; resume with the model file that the servers were trained with");
  }
  trainer->pass_memory_ = PassMemoryOn(device, config);
  CISTERN_RETURN_IF_ERROR(trainer->RestoreDense());
  v1::StepClock clock = client.clock();
  clock.set_step(trainer->at_.steps());
  trainer->model_->SetClock(clock);
  CISTERN_RETURN_IF_ERROR(trainer->model_->SetLossScale(trainer->at_.loss_scale));
  if (!config.data.eval_source.empty()) {
    trainer->evaluator_ = std::make_unique<Evaluator>(
        config, client, *trainer->model_, trainer->stage_, device, trainer->trainers(),
        LabelRuleOf(config), std::vector<std::string>{}, config.solver.eval_batches);
  }
  if (config.cistern.stream && config.cistern.stream->scores && !DefersUpdates(config)) {
    trainer->stream_scorer_ = std::make_unique<Evaluator>(
        config, client, *trainer->model_, trainer->stage_, device, trainer->trainers(),
        LabelRuleOf(config), std::vector<std::string>{}, /*max_batches=*/0);
  }
  return trainer;
}

absl::Status Trainer::RestoreDense() {
  for (int i = 0; i < model_->schema().dense_tables_size(); ++i) {
    CISTERN_ASSIGN_OR_RETURN(std::vector<float> values, model_->ReadDense(static_cast<size_t>(i)));
    const absl::Status pulled = client_.PullDense(static_cast<TableId>(i), values.data());
    if (absl::IsNotFound(pulled)) continue;  // a new fleet: keep the model's initial values
    CISTERN_RETURN_IF_ERROR(pulled);
    CISTERN_RETURN_IF_ERROR(model_->WriteDense(static_cast<size_t>(i), values));
  }
  return absl::OkStatus();
}

absl::StatusOr<TrainSummary> Trainer::Run() {
  CISTERN_RETURN_IF_ERROR(ApplyDeferred());
  const absl::Status trained = start_.is_over ? absl::OkStatus() : TrainPasses();
  if (!trained.ok()) {
    stops_feed_ = true;
    FinishCommit().IgnoreError();  // an error in one pass does not undo the pass before it
    return trained;
  }
  Stop(config_.solver.max_iter > 0 ? StopReason::kMaxIter : StopReason::kEpochs);
  CISTERN_RETURN_IF_ERROR(Finish());
  return Summary();
}

absl::Status Trainer::ApplyDeferred() {
  if (!start_.after_commit) {
    return AsLeader([this] {
      best_.RemoveAll();  // left by an earlier run
      return absl::OkStatus();
    });
  }
  if (start_.is_over) {
    static_cast<RunFigures&>(at_) = *at_.finished;
    at_.scored_iteration = at_.iterations;
    at_.best.reset();
    return absl::OkStatus();
  }
  // An AUC that stopped the run stops it again, unless the threshold is higher now.
  const bool enough = at_.stopped_by == StopReason::kAuc && config_.solver.auc_threshold < 1 &&
                      at_.score.auc && *at_.score.auc >= config_.solver.auc_threshold;
  if (!enough) at_.stopped_by = StopReason::kNone;
  if (!config_.cistern.keep_best) at_.best.reset();
  // A run that returned to its best epoch has no copy of that state: EndEpoch makes one.
  if (at_.finished) at_.best.reset();
  at_.finished.reset();
  committed_.finished.reset();
  CISTERN_RETURN_IF_ERROR(AsLeader([this] {
    if (at_.best) {
      best_.KeepOnly(at_.best->pass);
    } else {
      best_.RemoveAll();
    }
    return absl::OkStatus();
  }));
  if (start_.write_pass_line) log_.Write(PassLine());
  CISTERN_RETURN_IF_ERROR(AfterPass(/*again=*/!start_.write_pass_line));
  // Checks now, rather than at the end, that the best state exists. (EndEpoch may have changed it.)
  return AsLeader(
      [this] { return at_.best ? best_.PositionOf(at_.best->pass).status() : absl::OkStatus(); });
}

absl::Status Trainer::TrainPasses() {
  if (Stopping() || LimitReached()) return absl::OkStatus();
  ProcessGroup* stagers = group_ == nullptr ? nullptr : group_->stagers.get();
  CISTERN_ASSIGN_OR_RETURN(
      std::unique_ptr<data::PassSource> source,
      OpenTrainingData(config_, pass_memory_, device_, stagers, at_.cursor, &bad_data_,
                       &read_counts_, {[this] { return IsStopped(); }, &feed_status_}));
  pipeline_ = std::make_unique<PassPipeline>(config_, client_, device_, stagers, std::move(source),
                                             options_.trace);
  std::shared_ptr<ReadyPass> before;
  while (!Stopping() && !LimitReached()) {
    CISTERN_ASSIGN_OR_RETURN(std::shared_ptr<ReadyPass> ready, NextPass(before.get()));
    if (ready == nullptr) {
      if (config_.cistern.stream) {
        CISTERN_ASSIGN_OR_RETURN(const bool interrupted, Interrupted(/*iteration=*/0));
        Stop(interrupted ? StopReason::kInterrupt : StopReason::kEndOfStream);
      }
      break;
    }
    before = nullptr;  // the commit frees its memory
    if (stream_scorer_ != nullptr) {
      CISTERN_ASSIGN_OR_RETURN(
          const EvalSummary scored,
          stream_scorer_->ScorePass(*ready, config_.cistern.stream->score_samples, at_.samples));
      at_.pass_score = PassScoreOf(scored);
    }
    CISTERN_ASSIGN_OR_RETURN(const size_t trained, TrainPass(*ready));
    if (trained == 0) break;  // stopped before its first step
    before = ready;
    log_.Enter(Phase::kCommit);
    CISTERN_RETURN_IF_ERROR(EndPass(std::move(ready), trained));
  }
  CISTERN_CHECK(kept_rows_ == 0);  // the servers hold all rows as of the last pass
  stops_feed_ = true;
  CISTERN_RETURN_IF_ERROR(FinishCommit());
  trained_ = std::chrono::steady_clock::now();
  pipeline_.reset();
  return absl::OkStatus();
}

void Trainer::WriteFeedNotes() {
  for (const std::string& note : feed_status_.TakeNotes()) {
    Progress progress = Now(RunEvent::kWarning);
    progress.message = note;
    log_.Write(progress);
  }
}

absl::Status Trainer::AwaitStream() {
  while (!pipeline_->IsReady(absl::Milliseconds(20))) {
    if (committer_.has_result()) CISTERN_RETURN_IF_ERROR(FinishCommit());
    WriteFeedNotes();
  }
  WriteFeedNotes();
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<ReadyPass>> Trainer::NextPass(const ReadyPass* before) {
  log_.Enter(Phase::kRead);
  IdleTimes idle;
  if (config_.cistern.stream) CISTERN_RETURN_IF_ERROR(AwaitStream());
  absl::StatusOr<std::shared_ptr<ReadyPass>> next = pipeline_->Next(&idle);
  CISTERN_RETURN_IF_ERROR(Agree(trainers(), next.status()));
  log_.Enter(Phase::kTrain);
  const SteadyTime ready = std::chrono::steady_clock::now();
  if (before == nullptr) {
    first_step_ = last_pass_ = ready;
    return next;
  }
  if (*next != nullptr) CISTERN_RETURN_IF_ERROR(CarryOver(*before, stage_, **next));
  idle.carry_over = SecondsBetween(ready, std::chrono::steady_clock::now());
  idle_ += idle;
  return next;
}

absl::StatusOr<size_t> Trainer::TrainPass(ReadyPass& ready) {
  std::vector<PassTable*> tables;
  for (const auto& table : ready.tables) tables.push_back(table.get());
  const std::vector<data::HostBatch>& batches = ready.pass->batches;
  size_t launched = 0, trained = 0;
  while (launched < batches.size() && !Stopping() && !LimitReached()) {
    std::vector<const data::HostBatch*> next;
    for (size_t k = launched + 1; k < batches.size() && next.size() < Model::kBatchesAhead; ++k) {
      next.push_back(&batches[k]);
    }
    CISTERN_ASSIGN_OR_RETURN(const double scale, AwaitOrder(ready));
    if (Stopping()) break;
    CISTERN_RETURN_IF_ERROR(model_->Launch(batches[launched], tables,
                                           at_.steps() + 1 + (launched - trained), scale, next));
    ++launched;
    // One step keeps running while the next is enqueued, unless an action after it needs its rows
    // or its loss.
    const bool wait = next.empty() || IsMilestone(at_.iterations + (launched - trained));
    while (launched - trained > (wait ? 0 : 1)) {
      CISTERN_RETURN_IF_ERROR(FinishStep(batches[trained].all));
      ++trained;
    }
    if (trained == launched) CISTERN_RETURN_IF_ERROR(AfterStep(ready));
    if (committer_.has_result()) CISTERN_RETURN_IF_ERROR(FinishCommit());
    CISTERN_ASSIGN_OR_RETURN(const bool interrupted,
                             Interrupted(at_.iterations + (launched - trained)));
    if (interrupted) Stop(StopReason::kInterrupt);
  }
  for (; trained < launched; ++trained) {  // interrupted
    CISTERN_RETURN_IF_ERROR(FinishStep(batches[trained].all));
  }
  return trained;
}

absl::StatusOr<double> Trainer::AwaitOrder(const ReadyPass& ready) {
  while (options_.before_step) {
    const StepOrder order = options_.before_step(at_.iterations, at_.loss);
    if (order.kind == StepOrder::kEvaluate) {
      CISTERN_RETURN_IF_ERROR(EvaluateNow(&ready));
      continue;
    }
    if (order.kind == StepOrder::kStop) Stop(StopReason::kInterrupt);
    const double scheduled = config_.optimizer.schedule.At(at_.steps() + 1);
    if (!order.learning_rate || scheduled == 0) break;
    return *order.learning_rate / scheduled;
  }
  return plateau_.scale();
}

bool Trainer::IsStopped() const {
  const auto is_set = [](const std::atomic<bool>* flag) { return flag != nullptr && flag->load(); };
  return stops_feed_ || is_set(options_.interrupted) || is_set(options_.ended);
}

absl::StatusOr<bool> Trainer::Interrupted(uint64_t iteration) {
  constexpr uint64_t kWithOthers = 8;  // several workers check only at every 8th step
  const bool here = IsStopped();
  if (group_ == nullptr) return here;
  if (iteration % kWithOthers != 0) return false;
  CISTERN_ASSIGN_OR_RETURN(const uint64_t workers, SumOver(*trainers(), here ? 1 : 0));
  return workers > 0;
}

bool Trainer::IsMilestone(uint64_t iteration) const {
  const SolverConfig& solver = config_.solver;
  return options_.before_step || (solver.display > 0 && iteration % solver.display == 0) ||
         (solver.eval_interval > 0 && iteration % solver.eval_interval == 0) ||
         (solver.max_iter > 0 && iteration >= solver.max_iter);
}

absl::Status Trainer::FinishStep(size_t samples) {
  const absl::StatusOr<StepResult> step = model_->Finish();
  if (!step.ok()) {
    return AddContext(step.status(), absl::StrCat("iteration ", at_.iterations + 1));
  }
  busy_seconds_ += step->device_seconds;
  ++at_.iterations;
  at_.samples += samples;
  if (step->skipped) {
    ++at_.skipped_steps;
    return absl::OkStatus();
  }
  at_.loss = step->loss;
  if (options_.live != nullptr) options_.live->Step(at_.iterations, at_.samples, samples, at_.loss);
  at_.since_train_line.Add(step->loss);
  at_.since_pass_line.Add(step->loss);
  return absl::OkStatus();
}

absl::Status Trainer::AfterStep(const ReadyPass& ready) {
  const SolverConfig& solver = config_.solver;
  if (solver.display > 0 && at_.iterations % solver.display == 0) {
    Progress progress = Now(RunEvent::kTrain);
    progress.loss = at_.since_train_line.Mean();
    at_.since_train_line = {};
    log_.Write(progress);
  }
  if (solver.eval_interval > 0 && at_.iterations % solver.eval_interval == 0) {
    CISTERN_RETURN_IF_ERROR(EvaluateNow(&ready));
  }
  return absl::OkStatus();
}

Progress Trainer::Now(RunEvent event) const {
  Progress progress;
  progress.event = event;
  progress.iter = at_.iterations;
  progress.samples = at_.samples;
  progress.lr =
      config_.optimizer.schedule.At(std::max<uint64_t>(at_.steps(), 1)) * plateau_.scale();
  progress.pass = pass_;
  progress.skipped_steps = at_.skipped_steps;
  progress.skipped_data = skipped_data_ ? *skipped_data_ : bad_data_.counts();
  double done = 0;  // fraction of the run, if known
  if (config_.solver.max_iter > 0) {
    progress.total_iterations = config_.solver.max_iter;
    done = static_cast<double>(at_.iterations) / static_cast<double>(config_.solver.max_iter);
  }
  if (at_.epoch_samples > 0) {
    progress.epoch = static_cast<double>(at_.samples) / at_.epoch_samples;
    if (config_.solver.max_iter == 0) done = *progress.epoch / config_.solver.num_epochs;
  }
  if (done > 0 && done <= 1) progress.seconds_left = log_.seconds() * (1 - done) / done;
  return progress;
}

absl::Status Trainer::EvaluateNow(const ReadyPass* live) {
  if (evaluator_ == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        config_.path, ": the model asks for evaluations, but layers[0].eval_source is missing"));
  }
  CISTERN_RETURN_IF_ERROR(FinishCommit());
  const std::optional<Phase> before = log_.Enter(Phase::kEvaluate);
  absl::StatusOr<EvalSummary> result = evaluator_->Run(live);
  log_.Enter(before);
  if (!result.ok()) return AddContext(result.status(), "evaluation");
  at_.score = {result->auc, result->logloss, result->metrics};
  at_.scored_iteration = at_.iterations;
  const ScoreDetail& scores = *result->scores;
  label_entropy_ = EntropyOf(scores.share_of_positives());
  Progress progress = Now(RunEvent::kEval);
  static_cast<Score&>(progress) = at_.score;
  progress.unseen_keys = result->unseen_keys;
  progress.keys = result->keys;
  progress.scores = result->scores;
  log_.Write(progress);
  if (config_.solver.auc_threshold < 1 && result->auc &&
      *result->auc >= config_.solver.auc_threshold) {
    Stop(StopReason::kAuc);
  }
  return absl::OkStatus();
}

Progress Trainer::PassLine() {
  Progress progress = Now(RunEvent::kPass);
  const SteadyTime now = std::chrono::steady_clock::now();
  const double seconds = SecondsBetween(last_pass_, now);
  progress.idle = idle_.Over(seconds);
  progress.idle_seconds = idle_;
  progress.busy = BusyTime::Over(busy_seconds_, seconds);
  last_pass_ = now;
  busy_seconds_before_ += std::exchange(busy_seconds_, 0);
  idle_before_ += std::exchange(idle_, {});
  progress.rows = at_.pass_rows;
  if (kept_rows_ > 0) progress.kept_rows = kept_rows_;
  progress.loss = at_.since_pass_line.Mean();
  if (at_.pass_score) {
    static_cast<Score&>(progress) = at_.pass_score->score;
    progress.scored_samples = at_.pass_score->samples;
    progress.auc_standard_error = at_.pass_score->auc_error;
    progress.calibration_ratio = at_.pass_score->calibration_ratio;
  }
  if (config_.cistern.stream) {
    const data::FeedLag lag = feed_status_.lag();
    progress.behind_messages = lag.messages;
    progress.behind_seconds = lag.seconds;
  }
  return progress;
}

void Trainer::AddRemovedRows(Progress* pass) const {
  for (const EmbeddingConfig& embedding : config_.embeddings) {
    const v1::TableBounds& bounds = embedding.spec.bounds();
    if (bounds.max_rows() > 0) pass->evicted_rows = client_.evicted_rows();
    if (bounds.expire_passes() > 0 || bounds.expire_days() > 0) {
      pass->expired_rows = client_.expired_rows();
    }
  }
}

absl::Status Trainer::AfterPass(bool again) {
  at_.since_pass_line = {};
  at_.pass_score.reset();
  CISTERN_RETURN_IF_ERROR(SaveSnapshot(/*only_if_missing=*/again));
  return std::exchange(at_.epoch_ended, false) ? EndEpoch() : absl::OkStatus();
}

absl::Status Trainer::SaveSnapshot(bool only_if_missing) {
  const uint64_t snapshot = config_.solver.snapshot;
  if (snapshot == 0 || at_.iterations % snapshot != 0 || options_.out_dir.empty()) {
    return absl::OkStatus();
  }
  return AsLeader([&]() -> absl::Status {
    CISTERN_RETURN_IF_ERROR(SaveHugectrFiles());
    const std::string folder = absl::StrCat(options_.out_dir, "/snapshot-", at_.iterations);
    if (only_if_missing) {
      CISTERN_ASSIGN_OR_RETURN(const bool there, files_.Exists(folder));
      if (there) return absl::OkStatus();
    }
    return SaveModel(files_, client_, folder);
  });
}

// Writes the files again after a resume: existing files of that name may belong to another run.
absl::Status Trainer::SaveHugectrFiles() {
  if (!WritesHugectrModel(config_)) return absl::OkStatus();
  HugectrPlace place = {config_.solver.snapshot_prefix, at_.iterations};
  if (config_.cistern.snapshot_form == "v3") place.form = HugectrForm::kV3;
  const absl::Status written =
      WriteHugectrModel(files_, config_, *CommittedModelOf(client_, "the servers"), place).status();
  const std::string snapshot = absl::StrCat("the snapshot of iteration ", at_.iterations);
  if (!client_.durable()) {
    return AddContext(written, snapshot + " (solver.snapshot_prefix determines its path)");
  }
  return WithOptions(
      AddContext(written, snapshot + " (the training so far is committed: fix this, or set another "
                                     "solver.snapshot_prefix, and resume)"),
      {"resume"});
}

absl::Status Trainer::EndEpoch() {
  ++at_.epochs;
  at_.epoch_samples = static_cast<double>(at_.samples) / static_cast<double>(at_.epochs);
  const CisternConfig& rules = config_.cistern;
  if (!rules.eval_every_epoch) return absl::OkStatus();
  CISTERN_RETURN_IF_ERROR(EvaluateNow(nullptr));
  const bool best = plateau_.Observe(
      MonitoredValue(at_.score.auc, *at_.score.logloss, label_entropy_, rules.watches_log_loss));
  if (best && rules.keep_best) {
    CISTERN_RETURN_IF_ERROR(AsLeader([this] { return best_.Save(client_, committed_); }));
    at_.best = BestEpoch{pass_, at_.score};
    best_to_keep_ = pass_;
    best_is_last_ = true;
  }
  if (plateau_.should_stop()) Stop(StopReason::kPatience);
  return absl::OkStatus();
}

}  // namespace cistern
