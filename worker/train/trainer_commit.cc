// The commit of a pass: rows and position of all workers together.
#include "worker/train/trainer.h"

namespace cistern {

absl::Status Trainer::Commit(const ReadyPass& ready, size_t trained) {
  Position next = at_;
  next.cursor = ready.pass->CursorAfter(trained);
  next.epoch_ended = ready.pass->ends_epoch && trained == ready.pass->batches.size();
  next.plateau = plateau_.state();
  next.loss_scale = model_->loss_scale();
  ++next.passes;
  CISTERN_ASSIGN_OR_RETURN(next.pass_rows, RowsOf(ready));
  const bool durable = MustBeDurable(next, *ready.pass);

  CISTERN_RETURN_IF_ERROR(device_.stream().Wait());
  CISTERN_RETURN_IF_ERROR(BeginPass());
  const absl::Status committed = [&]() -> absl::Status {
    CISTERN_RETURN_IF_ERROR(Agree(trainers(), PushAll(ready)));
    return CommitPass({durable ? FormatPosition(next) : "", durable, model_->clock()});
  }();
  if (!committed.ok()) {
    // Abort errors are ignored, so that the caller sees the cause. A lost pass needs no abort: the
    // next claim drops it.
    if (leads() && !IsLostPass(client_, committed)) client_.AbortPass().IgnoreError();
    return AddContext(committed, absl::StrCat("pass ", client_.committed_pass() + 1));
  }
  at_ = committed_ = std::move(next);
  best_is_last_ = false;
  if (durable && best_to_keep_) {
    if (leads()) best_.KeepOnly(*best_to_keep_);
    best_to_keep_.reset();
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> Trainer::RowsOf(const ReadyPass& ready) {
  uint64_t rows = 0;
  for (const auto& table : ready.tables) rows += table->rows();
  if (group_ == nullptr) return rows;
  return SumOver(*trainers(), rows);
}

absl::Status Trainer::BeginPass() {
  const uint32_t workers = group_ == nullptr ? 1 : trainers()->size();
  CISTERN_RETURN_IF_ERROR(AsLeader([&] { return client_.BeginPass(workers); }));
  if (!leads()) client_.JoinPass();
  for (const std::string& server : client_.TakeRestarted()) {
    Progress progress = Now("lost");
    progress.message = absl::StrCat(server, " was restarted since the last pass; nothing was lost");
    log_.Write(progress);
  }
  return absl::OkStatus();
}

absl::Status Trainer::CommitPass(const ParameterClient::CommitOptions& commit) {
  CISTERN_RETURN_IF_ERROR(AsLeader([&] { return client_.CommitPass(commit); }));
  return group_ == nullptr ? absl::OkStatus() : FollowWriter(*trainers(), client_);
}

// Pushes this worker's rows; worker 0 also pushes the dense parameters, which all workers share.
absl::Status Trainer::PushAll(const ReadyPass& ready) {
  for (size_t e = 0; e < ready.tables.size(); ++e) {
    const PassTable& table = *ready.tables[e];
    CISTERN_RETURN_IF_ERROR(stage_.Read(
        table, [&](size_t first, size_t count, const float* values, const uint8_t* full) {
          return client_.Push(static_cast<TableId>(e), table.keys().subspan(first, count), values,
                              full);
        }));
  }
  if (!leads()) return client_.SealPass();
  for (int i = 0; i < model_->schema().dense_tables_size(); ++i) {
    CISTERN_ASSIGN_OR_RETURN(const std::vector<float> dense,
                             model_->ReadDense(static_cast<size_t>(i)));
    CISTERN_RETURN_IF_ERROR(client_.PushDense(static_cast<TableId>(i), dense.data()));
  }
  return absl::OkStatus();
}

// Durable are every k-th pass, every pass that may be the last, and every pass before a save.
bool Trainer::MustBeDurable(const Position& next, const Pass& pass) const {
  const uint64_t snapshot = config_.solver.snapshot;
  return next.passes % config_.cistern.commit_every == 0 || Stopping() || LimitReached() ||
         pass.is_last || (next.epoch_ended && config_.cistern.eval_every_epoch) ||
         (snapshot > 0 && next.iterations % snapshot == 0);
}

}  // namespace cistern
