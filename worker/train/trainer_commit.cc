// The end of a pass: from its last step to its commit, with the position of the run.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/value/value_layout.h"
#include "cuda/op/update/round_rows.h"
#include "worker/data/source/block_pool.h"
#include "worker/report/score_detail.h"
#include "worker/train/calibration.h"
#include "worker/train/trainer.h"

namespace cistern {

absl::Status Trainer::EndPass(std::shared_ptr<ReadyPass> ready, size_t trained) {
  CISTERN_RETURN_IF_ERROR(FinishCommit());
  CISTERN_ASSIGN_OR_RETURN(const Position next, PositionAfter(*ready, trained));
  const bool wait = NeedsCommit(next, *ready->pass);
  RoundRows(next, *ready);
  CISTERN_RETURN_IF_ERROR(device_.stream().Wait());
  if (next.epoch_ended) CISTERN_RETURN_IF_ERROR(Calibrate(*ready));
  const bool durable = wait || next.passes % config_.cistern.commit_every == 0;
  CISTERN_RETURN_IF_ERROR(
      StartCommit(std::move(ready), next, durable, NeedsAllRows(wait, durable)));
  at_ = next;
  ++pass_;
  best_is_last_ = false;
  log_.Hold(PassLine());
  if (wait) CISTERN_RETURN_IF_ERROR(FinishCommit());
  return AfterPass(/*again=*/false);
}

void Trainer::RoundRows(const Position& position, ReadyPass& ready) {
  for (const std::unique_ptr<PassTable>& table : ready.tables) {
    const ValueLayout& layout = table->layout();
    if (!layout.rounds()) continue;
    const auto [first, end] = layout.rounded_cells();
    op::RoundRows({first, end, layout.seed(), position.passes}, table->device_keys(),
                  table->values(), table->stride(), table->rows(), device_.stream());
  }
}

// The evaluation at the end of the epoch, and the state of the best one, then include the shift.
absl::Status Trainer::Calibrate(const ReadyPass& live) {
  if (config_.cistern.calibrate <= 0 || evaluator_ == nullptr) return absl::OkStatus();
  const std::optional<Phase> before = log_.Enter(Phase::kEvaluate);
  const absl::StatusOr<EvalSummary> result = evaluator_->Run(&live);
  log_.Enter(before);
  if (!result.ok()) return AddContext(result.status(), "calibration");
  if (result->scores->bins.empty()) return absl::OkStatus();
  return model_->ShiftLogits(ShiftToExpectedShare(result->scores->bins, config_.cistern.calibrate));
}

absl::StatusOr<Position> Trainer::PositionAfter(const ReadyPass& ready, size_t trained) {
  Position next = at_;
  next.cursor = ready.pass->CursorAfter(trained);
  next.epoch_ended = ready.pass->ends_epoch && trained == ready.pass->batches.size();
  next.plateau = plateau_.state();
  next.loss_scale = model_->loss_scale();
  ++next.passes;
  NoteProductKernels(&next);
  CISTERN_ASSIGN_OR_RETURN(next.pass_rows, RowsOf(ready));
  return next;
}

// A kernel is chosen once in a process, so only a run that is resumed can find another one.
void Trainer::NoteProductKernels(Position* next) const {
  std::string product;
  size_t changed = 0;
  for (const auto& [name, kernel] : model_->product_kernels()) {
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

absl::StatusOr<uint64_t> Trainer::RowsOf(const ReadyPass& ready) {
  uint64_t rows = 0;
  for (const auto& table : ready.tables) rows += table->rows();
  if (group_ == nullptr) return rows;
  return SumOver(*trainers(), rows);
}

absl::Status Trainer::StartCommit(std::shared_ptr<ReadyPass> ready, const Position& position,
                                  bool durable, bool all_rows) {
  FrozenPass pass;
  for (int i = 0; leads() && i < model_->schema().dense_tables_size(); ++i) {
    CISTERN_ASSIGN_OR_RETURN(pass.dense.emplace_back(), model_->ReadDense(static_cast<size_t>(i)));
  }
  pass.options = {durable ? FormatPosition(position) : "", durable, model_->clock()};
  // Only the rows and keys are needed from here on.
  std::vector<data::HostBatch> batches = std::exchange(ready->pass->batches, {});
  if (ready->pass->blocks != nullptr) ready->pass->blocks->Release(std::move(batches));
  pass.rows = std::move(ready);
  kept_rows_ = 0;
  if (!all_rows) CISTERN_RETURN_IF_ERROR(KeepRows(pass));
  in_flight_ = InFlight{position, durable};
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
    CISTERN_ASSIGN_OR_RETURN(kept_rows_, SumOver(*trainers(), kept_rows_));
  }
  kept_rows_in_all_ += kept_rows_;
  return absl::OkStatus();
}

absl::Status Trainer::FinishCommit() {
  if (!committer_.in_flight()) return absl::OkStatus();
  const SteadyTime begin = std::chrono::steady_clock::now();
  const absl::Status committed = committer_.Wait();
  idle_.commit += SecondsBetween(begin, std::chrono::steady_clock::now());
  for (const std::string& loss : committer_.TakeRestarted()) {
    Progress progress = Now(RunEvent::kLost);
    progress.message = absl::StrCat(loss, "; nothing was lost");
    log_.Write(progress);
  }
  if (!committed.ok()) return AddContext(committed, absl::StrCat("pass ", pass_));
  committed_ = std::move(in_flight_->position);
  if (in_flight_->durable && best_to_keep_) {
    if (leads()) best_.KeepOnly(*best_to_keep_);
    best_to_keep_.reset();
  }
  // Only the leader's client has committed, and only its log is written.
  log_.Release([this](Progress& pass) { AddRemovedRows(&pass); });
  return absl::OkStatus();
}

// Such a pass is durable. Others are durable as cistern.commit_every says.
bool Trainer::NeedsCommit(const Position& next, const data::Pass& pass) const {
  const uint64_t snapshot = config_.solver.snapshot;
  return Stopping() || LimitReached() || pass.is_last ||
         (next.epoch_ended && config_.cistern.eval_every_epoch) ||
         (snapshot > 0 && next.iterations % snapshot == 0);
}

}  // namespace cistern
