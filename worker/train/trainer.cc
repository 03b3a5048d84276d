#include "worker/train/trainer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/cross_entropy.h"
#include "common/base/log.h"
#include "common/value/schema.h"
#include "common/value/value_layout.h"
#include "cuda/op/update/round_rows.h"
#include "worker/data/source/block_pool.h"
#include "worker/report/score_detail.h"
#include "worker/train/calibration.h"
#include "worker/train/monitored_value.h"
#include "worker/train/snapshot.h"

namespace cistern {
namespace {

Plateau::Rule PlateauRule(const model::ModelConfig& config) {
  Plateau::Rule rule;
  rule.factor = config.cistern.plateau_factor;
  rule.min_scale = config.cistern.plateau_min_lr / config.optimizer.schedule.base;
  rule.min_gain = config.cistern.plateau_min_gain;
  rule.patience = config.cistern.patience;
  return rule;
}

// Makes the rows of tables with 16-bit rows what these will store.
void RoundRows(uint64_t passes, ReadyPass& ready, Stream& stream) {
  for (const std::unique_ptr<model::PassTable>& table : ready.tables) {
    const ValueLayout& layout = table->layout();
    if (!layout.rounds()) continue;
    const auto [first, end] = layout.rounded_cells();
    op::RoundRows({first, end, layout.seed(), passes}, table->device_keys(), table->values(),
                  table->stride(), table->rows(), stream);
  }
}

// Adds the kernels of this process to those of the run, and warns if they differ. A kernel is
// chosen once in a process, so only a run that is resumed can find another one.
void NoteProductKernels(const std::map<std::string, std::string>& kernels, Position* next) {
  std::string product;
  size_t changed = 0;
  for (const auto& [name, kernel] : kernels) {
    std::string& before = next->product_kernels[name];
    if (!before.empty() && before != kernel && changed++ == 0) product = name;
    before = kernel;
  }
  if (changed == 0) return;
  LogWarning(absl::StrCat(
      "the matrix library computes ", changed, " products with other kernels than before this run ",
      "was resumed, the first being ", product, ": the results are as exact, but not bit for bit ",
      "those of a run without interruption; resume on the same kind of GPU, with the same driver ",
      "and cuBLASLt, to repeat a run exactly"));
}

}  // namespace

Trainer::Trainer(const model::ModelConfig& config, ParameterClient& client,
                 const JobOptions& options, const TrainStart& start, DeviceContext& device,
                 TrainingGroup* group, MetricsLog& log)
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
      times_(std::chrono::steady_clock::now()),
      at_(start.position),
      pass_(client.committed_pass()),
      last_commit_{start.position},
      committer_(client, device, group == nullptr ? nullptr : group->committers.get(),
                 options.trace) {}

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(
    const model::ModelConfig& config, ParameterClient& client, const JobOptions& options,
    const TrainStart& start, DeviceContext& device, TrainingGroup* group, MetricsLog& log) {
  std::unique_ptr<Trainer> trainer(new Trainer(config, client, options, start, device, group, log));
  trainer->at_.config = TrainingValues(config);
  if (trainer->leads()) trainer->at_.data_samples = SamplesOfEpoch(config).value_or(0);
  CISTERN_ASSIGN_OR_RETURN(
      trainer->model_,
      model::Model::Create(config, device, group == nullptr ? nullptr : group->steps.get()));
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
  trainer->stream_scorer_ = StreamScorer::Create(config, client, *trainer->model_, trainer->stage_,
                                                 device, trainer->trainers());
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
  if (start_.is_more) CISTERN_RETURN_IF_ERROR(CheckLabels());
  const absl::Status trained = start_.is_over ? absl::OkStatus() : TrainPasses();
  if (!trained.ok()) {
    stops_feed_ = true;
    FinishCommit().IgnoreError();  // an error in one pass does not undo the pass before it
    return trained;
  }
  Stop(config_.solver.max_iter > 0 ? report::StopReason::kMaxIter : report::StopReason::kEpochs);
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
  const bool enough = at_.stopped_by == report::StopReason::kAuc &&
                      config_.solver.auc_threshold < 1 && at_.score.auc &&
                      *at_.score.auc >= config_.solver.auc_threshold;
  if (!enough) at_.stopped_by = report::StopReason::kNone;
  if (!config_.cistern.keep_best) at_.best.reset();
  // A run that returned to its best epoch has no copy of that state: EndEpoch makes one.
  if (at_.finished) at_.best.reset();
  at_.finished.reset();
  last_commit_.position.finished.reset();
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
  group::ProcessGroup* stagers = group_ == nullptr ? nullptr : group_->stagers.get();
  CISTERN_ASSIGN_OR_RETURN(
      std::unique_ptr<data::PassSource> source,
      OpenTrainingData(config_, pass_memory_, device_, stagers, at_.cursor, counts_.bad_data(),
                       counts_.read(), {[this] { return IsStopped(); }, &feed_status_}));
  pipeline_ = std::make_unique<PassPipeline>(config_, client_, device_, stagers, std::move(source),
                                             options_.trace);
  std::shared_ptr<ReadyPass> before;
  while (!Stopping() && !LimitReached()) {
    CISTERN_ASSIGN_OR_RETURN(std::shared_ptr<ReadyPass> ready, NextPass(before.get()));
    if (ready == nullptr) {
      if (config_.cistern.stream) {
        CISTERN_ASSIGN_OR_RETURN(const bool interrupted, Interrupted(/*iteration=*/0));
        Stop(interrupted ? report::StopReason::kInterrupt : report::StopReason::kEndOfStream);
      }
      break;
    }
    before = nullptr;  // the commit frees its memory
    if (stream_scorer_ != nullptr) {
      CISTERN_ASSIGN_OR_RETURN(at_.pass_score, stream_scorer_->Score(*ready, at_.samples));
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
  times_.End(std::chrono::steady_clock::now());
  pipeline_.reset();
  return absl::OkStatus();
}

void Trainer::WriteFeedNotes() {
  for (const std::string& note : feed_status_.TakeNotes()) {
    Progress progress = Now(report::RunEvent::kWarning);
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
  CISTERN_RETURN_IF_ERROR(group::Agree(trainers(), next.status()));
  log_.Enter(Phase::kTrain);
  const SteadyTime ready = std::chrono::steady_clock::now();
  if (before == nullptr) {
    times_.Start(ready);
    return next;
  }
  if (*next != nullptr) CISTERN_RETURN_IF_ERROR(CarryOver(*before, stage_, **next));
  idle.carry_over = SecondsBetween(ready, std::chrono::steady_clock::now());
  times_.AddIdle(idle);
  return next;
}

absl::StatusOr<size_t> Trainer::TrainPass(ReadyPass& ready) {
  std::vector<model::PassTable*> tables;
  for (const auto& table : ready.tables) tables.push_back(table.get());
  const std::vector<data::HostBatch>& batches = ready.pass->batches;
  const size_t last_stop =
      stream_scorer_ == nullptr ? batches.size() : stream_scorer_->FirstCalibrated(*ready.pass);
  size_t launched = 0, trained = 0;
  while (launched < batches.size() && !Stopping() && !LimitReached()) {
    std::vector<const data::HostBatch*> next;
    for (size_t k = launched + 1; k < batches.size() && next.size() < model::Model::kBatchesAhead;
         ++k) {
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
    if (interrupted && (launched <= last_stop || launched == batches.size())) {
      Stop(report::StopReason::kInterrupt);
    }
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
    if (order.kind == StepOrder::kStop) Stop(report::StopReason::kInterrupt);
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
  CISTERN_ASSIGN_OR_RETURN(const uint64_t workers, group::SumOver(*trainers(), here ? 1 : 0));
  return workers > 0;
}

bool Trainer::IsMilestone(uint64_t iteration) const {
  const model::SolverConfig& solver = config_.solver;
  return options_.before_step || (solver.display > 0 && iteration % solver.display == 0) ||
         (solver.eval_interval > 0 && iteration % solver.eval_interval == 0) ||
         (solver.max_iter > 0 && iteration >= solver.max_iter);
}

absl::Status Trainer::FinishStep(size_t samples) {
  const absl::StatusOr<model::StepResult> step = model_->Finish();
  if (!step.ok()) {
    return AddContext(step.status(), absl::StrCat("iteration ", at_.iterations + 1));
  }
  times_.AddBusy(step->device_seconds);
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
  const model::SolverConfig& solver = config_.solver;
  if (solver.display > 0 && at_.iterations % solver.display == 0) {
    Progress progress = Now(report::RunEvent::kTrain);
    progress.loss = at_.since_train_line.Mean();
    at_.since_train_line = {};
    log_.Write(progress);
  }
  if (solver.eval_interval > 0 && at_.iterations % solver.eval_interval == 0) {
    CISTERN_RETURN_IF_ERROR(EvaluateNow(&ready));
  }
  return absl::OkStatus();
}

Progress Trainer::Now(report::RunEvent event) const {
  Progress progress;
  progress.event = event;
  progress.iter = at_.iterations;
  progress.samples = at_.samples;
  progress.lr =
      config_.optimizer.schedule.At(std::max<uint64_t>(at_.steps(), 1)) * plateau_.scale();
  progress.pass = pass_;
  progress.skipped_steps = at_.skipped_steps;
  progress.skipped_data = counts_.skipped();
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
  const report::ScoreDetail& scores = *result->scores;
  label_entropy_ = EntropyOf(scores.share_of_positives());
  Progress progress = Now(report::RunEvent::kEval);
  static_cast<Score&>(progress) = at_.score;
  progress.unseen_keys = result->unseen_keys;
  progress.keys = result->keys;
  progress.scores = result->scores;
  log_.Write(progress);
  if (config_.solver.auc_threshold < 1 && result->auc &&
      *result->auc >= config_.solver.auc_threshold) {
    Stop(report::StopReason::kAuc);
  }
  return absl::OkStatus();
}

Progress Trainer::PassLine() {
  Progress progress = Now(report::RunEvent::kPass);
  const RunTimes::Shares shares = times_.EndPass(std::chrono::steady_clock::now());
  progress.idle = shares.idle;
  progress.idle_seconds = shares.idle_seconds;
  progress.busy = shares.busy;
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
  for (const model::EmbeddingConfig& embedding : config_.embeddings) {
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
  if (IsSnapshotDue(config_.solver, at_.iterations) && !options_.out_dir.empty()) {
    CISTERN_RETURN_IF_ERROR(AsLeader([&] {
      return SaveSnapshot(files_, config_, client_, options_.out_dir, at_.iterations, again);
    }));
  }
  return std::exchange(at_.epoch_ended, false) ? EndEpoch() : absl::OkStatus();
}

absl::Status Trainer::EndEpoch() {
  ++at_.epochs;
  at_.epoch_samples = static_cast<double>(at_.samples) / static_cast<double>(at_.epochs);
  const model::CisternConfig& rules = config_.cistern;
  if (!rules.eval_every_epoch) return absl::OkStatus();
  CISTERN_RETURN_IF_ERROR(EvaluateNow(nullptr));
  const bool best = plateau_.Observe(
      MonitoredValue(at_.score.auc, *at_.score.logloss, label_entropy_, rules.watches_log_loss));
  if (best && rules.keep_best) {
    CISTERN_RETURN_IF_ERROR(
        AsLeader([this] { return best_.Save(client_, last_commit_.position); }));
    at_.best = BestEpoch{pass_, at_.score};
  }
  if (plateau_.should_stop()) Stop(report::StopReason::kPatience);
  return absl::OkStatus();
}

absl::Status Trainer::CheckLabels() {
  if (evaluator_ == nullptr || !config_.cistern.eval_every_epoch) return absl::OkStatus();
  const absl::StatusOr<EvalSummary> result = evaluator_->Run(/*live=*/nullptr);
  if (!result.ok()) return AddContext(result.status(), "evaluation before training");
  if (!result->auc) return absl::OkStatus();
  Progress warning = Now(report::RunEvent::kWarning);
  warning.message = InvertedLabels(*result->auc, *result->scores);
  if (!warning.message.empty()) log_.Write(warning);
  return absl::OkStatus();
}

absl::Status Trainer::EndPass(std::shared_ptr<ReadyPass> ready, size_t trained) {
  CISTERN_RETURN_IF_ERROR(FinishCommit());
  CISTERN_ASSIGN_OR_RETURN(Position next, PositionAfter(*ready, trained));
  const bool wait = NeedsCommit(next, *ready->pass);
  RoundRows(next.passes, *ready, device_.stream());  // before the next pass takes them over
  CISTERN_RETURN_IF_ERROR(device_.stream().Wait());
  if (next.epoch_ended) CISTERN_RETURN_IF_ERROR(Calibrate(*ready));
  if (stream_scorer_ != nullptr && trained == ready->pass->batches.size()) {
    CISTERN_RETURN_IF_ERROR(CalibrateStream(*ready, &next));
  }
  const bool durable = wait || next.passes % config_.cistern.commit_every == 0;
  CISTERN_RETURN_IF_ERROR(
      StartCommit(std::move(ready), next, durable, NeedsAllRows(wait, durable)));
  at_ = next;
  ++pass_;
  log_.Hold(PassLine());
  if (wait) CISTERN_RETURN_IF_ERROR(FinishCommit());
  return AfterPass(/*again=*/false);
}

// The evaluation at the end of the epoch, and the state of the best one, then include the shift.
absl::Status Trainer::Calibrate(const ReadyPass& live) {
  if (config_.cistern.calibrate <= 0 || evaluator_ == nullptr) return absl::OkStatus();
  const std::optional<Phase> before = log_.Enter(Phase::kEvaluate);
  const absl::StatusOr<EvalSummary> result = evaluator_->Run(&live);
  log_.Enter(before);
  if (!result.ok()) return AddContext(result.status(), "calibration");
  if (result->scores->bins.empty()) return absl::OkStatus();
  const std::vector<report::ScoreBin>& bins = result->scores->bins;
  const double share = config_.cistern.calibrate;
  return model_->ShiftLogits(
      ShiftToShare(bins, config_.cistern.calibrate_exact ? share : ExpectedShare(bins, share)));
}

absl::Status Trainer::CalibrateStream(const ReadyPass& ready, Position* next) {
  CISTERN_ASSIGN_OR_RETURN(const std::optional<std::string> warning,
                           stream_scorer_->Calibrate(ready, &next->stream_share));
  if (!warning) return absl::OkStatus();
  Progress progress = Now(report::RunEvent::kWarning);
  progress.message = *warning;
  log_.Write(progress);
  return absl::OkStatus();
}

absl::StatusOr<Position> Trainer::PositionAfter(const ReadyPass& ready, size_t trained) {
  Position next = at_;
  next.cursor = ready.pass->CursorAfter(trained);
  next.epoch_ended = ready.pass->ends_epoch && trained == ready.pass->batches.size();
  next.plateau = plateau_.state();
  next.loss_scale = model_->loss_scale();
  ++next.passes;
  NoteProductKernels(model_->product_kernels(), &next);
  next.pass_rows = 0;
  for (const auto& table : ready.tables) next.pass_rows += table->rows();
  if (group_ != nullptr) {
    CISTERN_ASSIGN_OR_RETURN(next.pass_rows, group::SumOver(*trainers(), next.pass_rows));
  }
  return next;
}

absl::Status Trainer::StartCommit(std::shared_ptr<ReadyPass> ready, const Position& position,
                                  bool durable, bool all_rows) {
  FrozenPass pass;
  if (leads()) {
    if (!dense_) {
      CISTERN_ASSIGN_OR_RETURN(dense_, model::DenseSnapshot::Create(device_));
    }
    CISTERN_RETURN_IF_ERROR(model_->TakeDense(*dense_));
    pass.dense = &*dense_;
  }
  pass.options = {durable ? FormatPosition(position) : "", durable, model_->clock()};
  // Only the rows and keys are needed from here on.
  std::vector<data::HostBatch> batches = std::exchange(ready->pass->batches, {});
  if (ready->pass->blocks != nullptr) ready->pass->blocks->Release(std::move(batches));
  pass.rows = std::move(ready);
  kept_rows_ = 0;
  if (!all_rows) CISTERN_RETURN_IF_ERROR(KeepRows(pass));
  last_commit_ = {position, durable};
  committer_.Start(std::move(pass), [this] { pipeline_->Committed(); });
  return absl::OkStatus();
}

// Rows may be left out only if the next pass trains a step, so that it has a commit, which pushes
// them: a stream can end before that, and so can a run that is asked before each step. If the run
// fails, durable servers go back to their last commit, but others would be left with rows of
// different passes.
bool Trainer::NeedsAllRows(bool needed, bool durable) const {
  if (config_.cistern.stream || options_.before_step) return true;
  return client_.durable() ? durable : needed || !options_.servers_end_with_run;
}

absl::Status Trainer::KeepRows(FrozenPass& pass) {
  const auto shared = pipeline_->SharedWithNext();
  for (size_t e = 0; shared != nullptr && e < shared->size(); ++e) {
    const ValueLayout& layout = client_.layout(static_cast<TableId>(e));
    auto& staying = pass.staying.emplace_back();
    // Each commit decides from last_pass and counts which rows go.
    if (layout.is_bounded() || CountsSightings(layout.bounds())) continue;
    const std::vector<Row>& rows = (*shared)[e].from;
    staying = std::shared_ptr<const std::vector<Row>>(shared, &rows);
    kept_rows_ += rows.size();
  }
  if (group_ != nullptr) {
    CISTERN_ASSIGN_OR_RETURN(kept_rows_, group::SumOver(*trainers(), kept_rows_));
  }
  kept_rows_in_all_ += kept_rows_;
  return absl::OkStatus();
}

absl::Status Trainer::FinishCommit() {
  if (!committer_.in_flight()) return absl::OkStatus();
  const SteadyTime begin = std::chrono::steady_clock::now();
  if (options_.live != nullptr) options_.live->awaits_commit = true;
  const absl::Status committed = committer_.Wait();
  if (options_.live != nullptr) options_.live->awaits_commit = false;
  times_.AddIdle({.commit = SecondsSince(begin)});
  for (const std::string& loss : committer_.TakeRestarted()) {
    Progress progress = Now(report::RunEvent::kLost);
    progress.message = absl::StrCat(loss, "; nothing was lost");
    log_.Write(progress);
  }
  if (!committed.ok()) return AddContext(committed, absl::StrCat("pass ", pass_));
  if (last_commit_.durable) best_.KeepNewest();
  // Only the leader's client has committed, and only its log is written.
  log_.Release([this](Progress& pass) { AddRemovedRows(&pass); });
  return absl::OkStatus();
}

// Such a pass is durable. Others are durable as cistern.commit_every says.
bool Trainer::NeedsCommit(const Position& next, const data::Pass& pass) const {
  return Stopping() || LimitReached() || pass.is_last ||
         (next.epoch_ended && config_.cistern.eval_every_epoch) ||
         IsSnapshotDue(config_.solver, next.iterations);
}

// The position is that of the best epoch's end, so that a later resume continues from there.
absl::Status Trainer::RestoreBest() {
  CISTERN_ASSIGN_OR_RETURN(Position position, best_.PositionOf(at_.best->pass));
  position.finished = RunEnd{at_, LimitsOf(config_)};
  position.finished->score = at_.best->score;
  v1::StepClock clock = model_->clock();
  if (clock.step() > 0) clock.set_step(position.steps());
  return best_.Restore(client_, at_.best->pass, position, clock);
}

absl::Status Trainer::EndWithBest() {
  if (at_.best->pass != pass_) {
    CISTERN_RETURN_IF_ERROR(AsLeader([this] { return RestoreBest(); }));
    if (group_ != nullptr) CISTERN_RETURN_IF_ERROR(FollowWriter(*trainers(), client_));
    model_->SetClock(client_.clock());
    CISTERN_RETURN_IF_ERROR(RestoreDense());
    pass_ = client_.committed_pass();
  }
  if (leads()) best_.RemoveAll();
  return absl::OkStatus();
}

absl::Status Trainer::Finish() {
  CISTERN_RETURN_IF_ERROR(counts_.Gather(
      trainers(), /*own_data=*/config_.cistern.streams > 1 || config_.cistern.stream));
  log_.Enter(Phase::kSave);
  const bool interrupted = at_.interrupted();
  // A run to be resumed keeps both its last state, on the servers, and its best state, on disk.
  const bool goes_on = interrupted && client_.durable();
  const std::optional<BestEpoch> best = at_.best;
  if (best && !goes_on) CISTERN_RETURN_IF_ERROR(EndWithBest());
  if (start_.is_over && leads()) best_.RemoveAll();
  if (best) at_.score = best->score;
  if (const std::string folder = ModelDir(); !folder.empty()) {
    CISTERN_RETURN_IF_ERROR(AsLeader([&] {
      return best && goes_on ? best_.CopyTo(best->pass, folder)
                             : SaveModel(files_, client_, folder);
    }));
  }
  // The scores of the best epoch, or of an evaluation after the last step, are still valid.
  const bool scored = best || at_.scored_iteration == at_.iterations;
  std::shared_ptr<const report::ScoreDetail> scores;
  if (evaluator_ != nullptr && !interrupted && !scored && !options_.before_step) {
    log_.Enter(Phase::kEvaluate);
    absl::StatusOr<EvalSummary> result = evaluator_->Run(nullptr);
    if (!result.ok()) return AddContext(result.status(), "evaluation");
    at_.score = {result->auc, result->logloss, result->metrics};
    scores = result->scores;
  }
  Progress progress = Now(report::RunEvent::kFinal);
  progress.loss = at_.loss;
  static_cast<Score&>(progress) = at_.score;
  progress.rows = at_.pass_rows;
  progress.idle = times_.shares().idle;
  progress.busy = times_.shares().busy;
  progress.scores = scores;
  progress.decoded_bytes = counts_.decoded_bytes();
  log_.Write(progress);
  return absl::OkStatus();
}

TrainSummary Trainer::Summary() const {
  TrainSummary summary;
  static_cast<RunFigures&>(summary) = at_;
  summary.rows = at_.pass_rows;
  summary.skipped_steps = at_.skipped_steps;
  summary.kept_rows = kept_rows_in_all_;
  summary.skipped_data = counts_.skipped();
  summary.decoded_bytes = counts_.decoded_bytes();
  summary.seconds = log_.seconds();
  summary.samples_per_second = static_cast<double>(at_.samples) / summary.seconds;
  summary.first_step_seconds = times_.first_step_seconds();
  summary.idle = times_.shares().idle;
  summary.busy = times_.shares().busy;
  summary.model_dir = ModelDir();
  return summary;
}

}  // namespace cistern
