#include "worker/train/train_job.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "common/base/cross_entropy.h"
#include "common/base/thread_limit.h"
#include "common/base/version.h"
#include "worker/client/backoff.h"
#include "worker/export/hugectr/hugectr_model.h"
#include "worker/pass/data_source.h"
#include "worker/report/run_view.h"
#include "worker/train/data_look.h"

namespace cistern {
namespace {

// A pass that is lost this often is not lost by chance.
constexpr uint64_t kMaxLosses = 20;

// The time for all workers to start, if the job does not wait for lost workers.
constexpr double kGatheringSeconds = 60;

using JobValues = std::map<std::string, std::string>;

std::string ValueOf(const JobValues& values, const std::string& key) {
  const auto it = values.find(key);
  return it == values.end() ? "no such value" : it->second;
}

// The first key whose values differ; empty if none.
std::string FirstDifference(const JobValues& a, const JobValues& b) {
  for (const auto& [key, value] : a) {
    if (ValueOf(b, key) != value) return key;
  }
  for (const auto& [key, value] : b) {
    if (a.count(key) == 0) return key;
  }
  return "";
}

// Parses another worker's values, a JSON object of strings.
absl::StatusOr<JobValues> ParseValues(const std::string& text, size_t worker) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  bool is_good = json.is_object();
  JobValues values;
  for (auto it = json.begin(); is_good && it != json.end(); ++it) {
    is_good = it->is_string();
    if (is_good) values[it.key()] = it->get<std::string>();
  }
  if (is_good) return values;
  return absl::InternalError(
      absl::StrCat("worker ", worker, " sent job values that cannot be parsed"));
}

// Renames the log of a finished run, so that the next one has its own.
absl::Status KeepLog(FileSystem& files, const std::string& out_dir) {
  for (int n = 1;; ++n) {
    const std::string kept = absl::StrCat(out_dir, "/metrics-", n, ".jsonl");
    CISTERN_ASSIGN_OR_RETURN(const bool taken, files.Exists(kept));
    if (taken) continue;
    const absl::Status renamed = files.Replace(out_dir + "/metrics.jsonl", kept);
    return absl::IsNotFound(renamed) ? absl::OkStatus() : renamed;
  }
}

// The point of the run at which the job starts or continues.
MetricsLog::Place PlaceOf(const TrainStart& start, PassId pass) {
  if (!start.after_commit) return {};
  // A finished run keeps all its lines, including those after the best epoch to which it returned.
  if (start.is_over) return {UINT64_MAX, start.position.samples, UINT64_MAX};
  return {start.position.iterations, start.position.samples, pass};
}

}  // namespace

absl::StatusOr<TrainSummary> TrainJob::Run() {
  CISTERN_ASSIGN_OR_RETURN(device_,
                           DeviceContext::Open(options_.device, options_.gpu, options_.check_ops));
  CISTERN_ASSIGN_OR_RETURN(schema_, SchemaOf(config_));
  FileSystem& files = options_.files != nullptr ? *options_.files : local_files_;
  CISTERN_ASSIGN_OR_RETURN(log_,
                           leads() ? MetricsLog::Create(files, options_.out_dir, options_.progress)
                                   : MetricsLog::Create(files, "", nullptr));
  log_->ShowOn(options_.live, options_.figures, options_.trace);
  absl::Status status = Begin();
  while (true) {
    if (status.ok()) {
      absl::StatusOr<TrainSummary> summary = trainer_->Run();
      if (summary.ok()) return WithHistory(*std::move(summary));
      status = summary.status();
    }
    Disband(status);
    if (!IsLostPass(client_, status)) return status;
    if (options_.world_size > 1 && !gathered_) return status;
    CISTERN_RETURN_IF_ERROR(Recover(status));
    status = absl::OkStatus();
  }
}

TrainSummary TrainJob::WithHistory(TrainSummary summary) const {
  if (start_.is_over) {
    summary.resumed_from = start_.position.finished->iterations;
  } else if (start_.after_commit) {
    summary.resumed_from = start_.position.iterations;
  }
  summary.recoveries = recoveries_;
  return summary;
}

absl::Status TrainJob::Begin() {
  CISTERN_RETURN_IF_ERROR(GatherGroup());
  CISTERN_RETURN_IF_ERROR(group::Lead(trainers(), [this] { return Claim(); }));
  if (group_ != nullptr) CISTERN_RETURN_IF_ERROR(FollowLeader());
  term_ = client_.identity().epoch();
  if (!std::exchange(began_, true)) {
    start_ = last_start_;
    first_commit_ = client_.manifest().commit();
  }
  CISTERN_ASSIGN_OR_RETURN(trainer_, Trainer::Create(config_, client_, options_, last_start_,
                                                     *device_, group_.get(), *log_));
  return absl::OkStatus();
}

absl::Status TrainJob::Claim() {
  // The first time, a model that does not match the tables is refused before the claim fences other
  // writers. Later the claim comes first, because a server may have lost its tables, and because an
  // interrupted claim also fences this worker's previous term.
  if (!has_claimed_) CISTERN_RETURN_IF_ERROR(client_.CreateTables(schema_));
  const bool again = std::exchange(has_claimed_, true);
  CISTERN_RETURN_IF_ERROR(client_.ClaimTerm());
  if (again) CISTERN_RETURN_IF_ERROR(client_.CreateTables(schema_));
  CISTERN_ASSIGN_OR_RETURN(last_start_, began_ ? NextStart() : FirstStart());
  if (!began_) CISTERN_RETURN_IF_ERROR(CheckSnapshots());
  return StartLog(last_start_);
}

absl::Status TrainJob::GatherGroup() {
  if (options_.world_size == 1) return absl::OkStatus();
  const group::GroupPlace place = {
      options_.rank,       options_.world_size,
      options_.peers,      SecretOfRun(client_, options_.rank, options_.peers),
      options_.tls,        options_.cluster,
      options_.interrupted};
  const bool waits = gathered_ || options_.recovery_seconds > 0;
  const double seconds = waits ? options_.recovery_seconds : kGatheringSeconds;
  absl::StatusOr<std::unique_ptr<TrainingGroup>> group = TrainingGroup::Form(
      place, std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000)), *device_);
  if (!group.ok() && interrupted()) {
    return absl::CancelledError("interrupted while waiting for the other workers to join");
  }
  CISTERN_RETURN_IF_ERROR(group.status());
  group_ = *std::move(group);
  return CheckSameJob();
}

// A restarted worker resumes together with workers that kept running. Therefore these count as
// started with --resume, too.
absl::Status TrainJob::CheckSameJob() {
  // A value may contain a path that is not valid UTF-8.
  JobValues own(config_.values.begin(), config_.values.end());
  own["resume"] = std::exchange(gathered_, true) || options_.resume ? "given" : "not given";
  own["no_save_model"] = options_.save_model ? "not given" : "given";
  own["number of servers"] = absl::StrCat(client_.servers().size());
  // Another version may compute other bits of the same step.
  own["version of cistern"] = kVersion;
  own["durability of the servers"] = client_.durable() ? "commit" : "none";
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> said,
                           trainers()->Gather(nlohmann::json(own).dump(
                               -1, ' ', false, nlohmann::json::error_handler_t::replace)));
  CISTERN_ASSIGN_OR_RETURN(const JobValues of_leader, ParseValues(said[0], 0));
  for (size_t r = 1; r < said.size(); ++r) {
    CISTERN_ASSIGN_OR_RETURN(const JobValues other, ParseValues(said[r], r));
    const std::string key = FirstDifference(of_leader, other);
    if (key.empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "worker ", r, " was started with another model or other flags: ", key, ": ",
        ValueOf(other, key), "; worker 0 has ", ValueOf(of_leader, key),
        key == "resume" ? " or was already training" : "", "; give all workers the same"));
  }
  return absl::OkStatus();
}

absl::Status TrainJob::FollowLeader() {
  CISTERN_RETURN_IF_ERROR(FollowWriter(*trainers(), client_));
  if (!leads()) {
    CISTERN_RETURN_IF_ERROR(CheckFleetOfWriter(client_));
    CISTERN_RETURN_IF_ERROR(client_.CreateTables(schema_));
  }
  CISTERN_ASSIGN_OR_RETURN(last_start_, StartOfLeader(*trainers(), last_start_));
  if (!leads()) CISTERN_RETURN_IF_ERROR(StartLog(last_start_));
  return absl::OkStatus();
}

void TrainJob::Disband(const absl::Status& why) {
  if (group_ != nullptr) group_->Abort(why);
  trainer_.reset();
  group_.reset();
}

absl::StatusOr<TrainStart> TrainJob::FirstStart() {
  const std::string& state = client_.manifest().worker();
  if (options_.resume && !client_.durable()) {
    return WithOptions(
        absl::InvalidArgumentError("cannot resume: these servers were started without a data_dir, "
                                   "so nothing was saved; start anew"),
        {"resume", "cistern-server.data_dir"});
  }
  TrainStart start;
  if (state.empty()) {
    CISTERN_RETURN_IF_ERROR(ReadModelFiles());
    // Servers without a position still know the step of rows with deferred updates.
    start.position.steps_before = client_.clock().step();
    return start;
  }
  CISTERN_ASSIGN_OR_RETURN(const Position position, ParsePosition(state));
  const bool only_files = position.passes == 0;  // committed by ReadModelFiles, nothing trained yet
  const uint64_t data_samples = options_.resume ? SamplesOfEpoch(config_).value_or(0) : 0;
  const bool again = options_.again || !ReadsSameData(position, config_, data_samples);
  if (options_.resume && options_.more && again && !only_files) {
    return StartOfMore(position);
  }
  if (options_.resume) {
    const bool other_data = only_files && options_.more;
    CISTERN_RETURN_IF_ERROR(CheckSameTraining(position, config_, other_data));
    CISTERN_RETURN_IF_ERROR(CheckSameSize(position, config_, data_samples));
    CISTERN_RETURN_IF_ERROR(CheckEpochs(position, config_));
    return only_files ? start : StartAfter(position);
  }
  if (!(only_files && reading_files_)) CISTERN_RETURN_IF_ERROR(ReadModelFiles());
  start.position.steps_before = position.steps();
  return start;
}

absl::StatusOr<TrainStart> TrainJob::StartOfMore(const Position& position) {
  CISTERN_RETURN_IF_ERROR(CheckSameTraining(position, config_, /*more=*/true));
  // The limits of the last run are not known; a run that ended has read its data to the end of an
  // epoch, or was stopped.
  const uint64_t max_iter = config_.solver.max_iter;
  const bool ended = position.epoch_ended || position.stopped_by != report::StopReason::kNone ||
                     position.finished || (max_iter > 0 && position.iterations >= max_iter);
  TrainStart start;
  CISTERN_ASSIGN_OR_RETURN(const bool left, LeaveStream(position, &start.position));
  if (!ended && !left && !options_.again) {
    return absl::InvalidArgumentError(
        absl::StrCat("the last run stopped in the middle of its data (after iteration ",
                     position.iterations, "): finish it first, without new data"));
  }
  FileSystem& files = options_.files != nullptr ? *options_.files : local_files_;
  if (leads() && !options_.out_dir.empty()) {
    CISTERN_RETURN_IF_ERROR(KeepLog(files, options_.out_dir));
  }
  start.position.steps_before = position.steps();
  start.is_more = true;
  return start;
}

absl::StatusOr<bool> TrainJob::LeaveStream(const Position& position, Position* next) const {
  next->left_streams = position.left_streams;
  const auto before = position.config.find(kStreamValue);
  if (before != position.config.end()) {
    const data::PassCursor& cursor = position.cursor;
    if (cursor.pass_batches > 0 || cursor.next.sample > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("the last run stopped inside a pass of its stream ", before->second,
                       " (after iteration ", position.iterations,
                       "): continue the stream first, with cistern.stream.until=empty if it should "
                       "end by itself"));
    }
    next->left_streams[before->second] = cursor.next.slice;
  }
  const auto values = TrainingValues(config_);
  const auto now = values.find(kStreamValue);
  if (now != values.end()) {
    // A stream that the run has read before continues where it was left.
    const auto known = next->left_streams.find(now->second);
    if (known != next->left_streams.end()) {
      next->cursor.next.slice = known->second;
      next->left_streams.erase(known);
    }
  }
  return before != position.config.end();
}

// The commit carries the position of a new run, so that a run resumed from it does not import the
// files again. (A loss may hide that the import succeeded: reading_files_ records the attempt.)
absl::Status TrainJob::ReadModelFiles() {
  if (!StartsFromHugectrModel(config_)) return absl::OkStatus();
  reading_files_ = true;
  Position beginning;
  beginning.config = TrainingValues(config_);
  FileSystem& files = options_.files != nullptr ? *options_.files : local_files_;
  return ReadHugectrModel(files, config_, client_, FormatPosition(beginning));
}

absl::Status TrainJob::CheckSnapshots() {
  const uint64_t snapshot = config_.solver.snapshot;
  if (snapshot == 0 || options_.out_dir.empty() || !WritesHugectrModel(config_)) {
    return absl::OkStatus();
  }
  const bool is_due =
      config_.solver.max_iter / snapshot > last_start_.position.iterations / snapshot;
  if (!is_due || client_.committed_pass() == 0) return absl::OkStatus();
  FileSystem& files = options_.files != nullptr ? *options_.files : local_files_;
  return AddContext(
      CheckSnapshotSlots(files, config_, client_),
      absl::StrCat("the first snapshot (solver.snapshot is ", snapshot,
                   ", 0 writes none) would fail, so nothing is trained: the servers hold rows of "
                   "an earlier run"));
}

absl::StatusOr<TrainStart> TrainJob::NextStart() const {
  const v1::Manifest& manifest = client_.manifest();
  if (manifest.commit() == first_commit_) return start_;
  if (manifest.epoch() > term_) {
    return absl::FailedPreconditionError(
        absl::StrCat("another writer has taken over: commit ", manifest.commit(), " has term ",
                     manifest.epoch(), ", this job had term ", term_,
                     "; find out which job trains on these servers before you resume this one"));
  }
  CISTERN_ASSIGN_OR_RETURN(const Position position, ParsePosition(manifest.worker()));
  return StartAfter(position);
}

absl::StatusOr<TrainStart> TrainJob::StartAfter(const Position& position) const {
  TrainStart start;
  start.position = position;
  start.after_commit = true;
  start.is_over = position.finished && !LimitsOf(config_).AllowsMoreThan(position.finished->limits);
  return start;
}

absl::Status TrainJob::StartLog(TrainStart& start) {
  // Only after the claim: a job that the servers refuse keeps the lines of the previous job.
  CISTERN_ASSIGN_OR_RETURN(const bool has_line,
                           log_->StartAt(PlaceOf(start, client_.committed_pass())));
  if (leads()) start.write_pass_line = !has_line;
  if (leads() && !start.after_commit && recoveries_ == 0) {
    FileSystem& files = options_.files != nullptr ? *options_.files : local_files_;
    if (!options_.out_dir.empty()) report::RemoveReportFiles(files, options_.out_dir);
    WarnOfData();
  }
  if (!options_.resume || recoveries_ > 0) return absl::OkStatus();
  Report(report::RunEvent::kResume, start.is_over ? "the run is over: nothing is left to train"
                                    : start.after_commit ? "continuing after the last commit"
                                    : start.is_more
                                        ? "continuing with more data"
                                        : "nothing was committed yet: starting from the beginning");
  return absl::OkStatus();
}

// An error is left to the training itself, which says where it is.
void TrainJob::WarnOfData() {
  for (const std::string& warning : options_.warnings) Report(report::RunEvent::kWarning, warning);
  const auto look = LookAtData(config_, options_.columns, options_.world_size);
  if (!look.ok()) return;
  RunWarnings& warnings = log_->warnings();
  const double weight = config_.cistern.positive_weight;
  warnings.KnowPositiveWeight(weight);
  if (config_.cistern.calibrate_exact) warnings.KnowExactShare(config_.cistern.calibrate);
  if (look->positives) warnings.KnowLossOfConstant(LossOfConstant(*look->positives, weight));
  for (const std::string& warning : look->warnings) Report(report::RunEvent::kWarning, warning);
}

absl::Status TrainJob::Recover(const absl::Status& lost) {
  term_ = client_.identity().epoch();  // the trainer may have claimed a term
  const std::string redo = absl::StrCat("pass ", client_.committed_pass() + 1);
  if (interrupted()) {
    return absl::CancelledError(absl::StrCat("interrupted while ", redo, " was lost (",
                                             lost.message(), "); the previous commit is kept"));
  }
  CISTERN_RETURN_IF_ERROR(CheckProgress(lost));
  Report(report::RunEvent::kLost, absl::StrCat(lost.message(), "; waiting up to ",
                                               options_.recovery_seconds, " s for ", Awaited()));
  ++recoveries_;
  CISTERN_RETURN_IF_ERROR(WaitAndBegin(lost));
  Report(report::RunEvent::kRecover,
         absl::StrCat("training again from pass ", client_.committed_pass() + 1,
                      "; reason for the loss of ", redo, ": ", lost.message()));
  return absl::OkStatus();
}

absl::Status TrainJob::CheckProgress(const absl::Status& lost) {
  const uint64_t commit = client_.manifest().commit();
  if (std::exchange(commit_of_loss_, commit) != commit) losses_ = 0;
  if (++losses_ <= kMaxLosses) return absl::OkStatus();
  return AddContext(lost, absl::StrCat("lost ", kMaxLosses, " times since commit ", commit));
}

absl::Status TrainJob::WaitAndBegin(const absl::Status& lost) {
  Backoff backoff(absl::Seconds(options_.recovery_seconds), options_.rank);
  absl::Status last = lost;
  while (true) {
    const std::optional<absl::Duration> delay = backoff.Next(Backoff::Clock::now());
    if (!delay)
      return AddContext(backoff.GaveUp(last), absl::StrCat(Awaited(), " did not come back"));
    if (!Sleep(*delay)) {
      return absl::CancelledError(
          absl::StrCat("interrupted while waiting for ", Awaited(), " (", last.message(), ")"));
    }
    last = Begin();
    if (last.ok()) return last;
    Disband(last);
    if (!IsLostPass(client_, last)) return last;
  }
}

bool TrainJob::Sleep(absl::Duration time) const {
  const absl::Time end = absl::Now() + time;
  while (!interrupted() && absl::Now() < end) absl::SleepFor(absl::Milliseconds(50));
  return !interrupted();
}

void TrainJob::Report(report::RunEvent event, const std::string& message) {
  Progress progress;
  progress.event = event;
  progress.iter = last_start_.position.iterations;
  progress.samples = last_start_.position.samples;
  progress.pass = client_.committed_pass();
  progress.message = message;
  if (leads()) {
    log_->Write(progress);
  } else if (options_.progress) {  // other workers write no lines, but report what they wait for
    options_.progress(progress);
  }
}

absl::StatusOr<TrainSummary> Train(const model::ModelConfig& config, ParameterClient& client,
                                   const JobOptions& options) {
  if (options.rank >= options.world_size || (options.world_size > 1 && options.peers.empty())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "worker ", options.rank, " of ", options.world_size, ", with address '", options.peers,
        "': ranks start at 0, and several workers need the address of "
        "worker 0"));
  }
  const ThreadLimit threads(options.threads);
  return TrainJob(config, client, options).Run();
}

}  // namespace cistern
