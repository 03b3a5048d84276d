// The end of a run: selects the final state, saves its model, reports its metrics.
#include "worker/train/json_fields.h"
#include "worker/train/trainer.h"

namespace cistern {

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
  if (!best_is_last_) {
    CISTERN_RETURN_IF_ERROR(AsLeader([this] { return RestoreBest(); }));
    if (group_ != nullptr) CISTERN_RETURN_IF_ERROR(FollowWriter(*trainers(), client_));
    model_->SetClock(client_.clock());
    CISTERN_RETURN_IF_ERROR(RestoreDense());
    pass_ = client_.committed_pass();
  }
  if (leads()) best_.RemoveAll();
  return absl::OkStatus();
}

// Each of several workers leaves out what is in its own streams. In the order of the files, all see
// the same.
absl::Status Trainer::GatherCounts() {
  decoded_bytes_ = {read_counts_.decoded_bytes.load()};
  if (group_ == nullptr) return absl::OkStatus();
  FieldWriter own;
  own.Value("decoded_bytes", decoded_bytes_[0]);
  own.Value("skipped_data", bad_data_.counts());
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> said,
                           trainers()->Gather(own.json().dump()));
  decoded_bytes_.clear();
  data::BadData::Counts sums;
  for (size_t r = 0; r < said.size(); ++r) {
    const auto json = nlohmann::ordered_json::parse(said[r], nullptr, /*allow_exceptions=*/false);
    uint64_t bytes = 0;
    data::BadData::Counts counts;
    FieldReader fields(json, "");
    fields.Value("decoded_bytes", bytes);
    fields.Value("skipped_data", counts);
    CISTERN_RETURN_IF_ERROR(AddContext(fields.Finish(), absl::StrCat("worker ", r)));
    decoded_bytes_.push_back(bytes);
    for (const auto& [cause, files] : counts) sums[cause] += files;
  }
  if (config_.cistern.streams > 1 || config_.cistern.stream) skipped_data_ = sums;
  return absl::OkStatus();
}

absl::Status Trainer::Finish() {
  CISTERN_RETURN_IF_ERROR(GatherCounts());
  log_.Enter(Phase::kSave);
  const bool interrupted = at_.interrupted();
  // A run to be resumed keeps both its last state, on the servers, and its best state, on disk.
  const bool goes_on = interrupted && client_.durable();
  const std::optional<BestEpoch> best = at_.best;
  if (best && !goes_on) CISTERN_RETURN_IF_ERROR(EndWithBest());
  if (start_.is_over && leads()) best_.RemoveAll();
  if (best) at_.score = best->score;
  if (options_.save_model && !options_.out_dir.empty()) {
    CISTERN_RETURN_IF_ERROR(AsLeader([&] {
      return best && goes_on ? best_.CopyTo(best->pass, ModelDir())
                             : SaveModel(files_, client_, ModelDir());
    }));
    model_dir_ = ModelDir();
  }
  // The scores of the best epoch, or of an evaluation after the last step, are still valid.
  const bool scored = best || at_.scored_iteration == at_.iterations;
  std::shared_ptr<const ScoreDetail> scores;
  if (evaluator_ != nullptr && !interrupted && !scored && !options_.before_step) {
    log_.Enter(Phase::kEvaluate);
    absl::StatusOr<EvalSummary> result = evaluator_->Run(nullptr);
    if (!result.ok()) return AddContext(result.status(), "evaluation");
    at_.score = {result->auc, result->logloss, result->metrics};
    scores = result->scores;
  }
  Progress progress = Now(RunEvent::kFinal);
  progress.loss = at_.loss;
  static_cast<Score&>(progress) = at_.score;
  progress.rows = at_.pass_rows;
  progress.idle = IdleShares();
  progress.busy = Busy();
  progress.scores = scores;
  progress.decoded_bytes = decoded_bytes_;
  log_.Write(progress);
  return absl::OkStatus();
}

IdleTimes Trainer::IdleShares() const {
  IdleTimes idle = idle_before_;
  idle += idle_;
  return idle.Over(SecondsBetween(first_step_, trained_));
}

BusyTime Trainer::Busy() const {
  return BusyTime::Over(busy_seconds_before_ + busy_seconds_,
                        SecondsBetween(first_step_, trained_));
}

TrainSummary Trainer::Summary() const {
  TrainSummary summary;
  static_cast<RunFigures&>(summary) = at_;
  summary.rows = at_.pass_rows;
  summary.skipped_steps = at_.skipped_steps;
  summary.kept_rows = kept_rows_in_all_;
  summary.skipped_data = skipped_data_ ? *skipped_data_ : bad_data_.counts();
  summary.decoded_bytes = decoded_bytes_;
  summary.seconds = log_.seconds();
  summary.samples_per_second = static_cast<double>(at_.samples) / summary.seconds;
  summary.first_step_seconds = SecondsBetween(begin_, first_step_);
  summary.idle = IdleShares();
  summary.busy = Busy();
  summary.model_dir = model_dir_;
  return summary;
}

}  // namespace cistern
