#include "worker/train/metrics_log.h"

#include <type_traits>

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_split.h"
#include "common/base/check.h"
#include "common/base/log.h"
#include "common/io/new_file.h"
#include "common/trace/trace_file.h"
#include "worker/report/score_detail.h"
#include "worker/train/metric_json.h"
#include "worker/train/train_figures.h"

namespace cistern {
namespace {

template <typename T>
void Put(nlohmann::ordered_json& line, const char* name, const std::optional<T>& value) {
  if (value) line[name] = *value;
}

// phases: seconds by phase; null: the line does not tell.
std::string ToLine(const Progress& p, const PhaseSeconds* phases) {
  nlohmann::ordered_json line;
  line["event"] = report::EventName(p.event);
  line["iter"] = p.iter;
  line["samples"] = p.samples;
  Put(line, "epoch", p.epoch);
  Put(line, "loss", p.loss);
  Put(line, "lr", p.lr);
  // An evaluation of one class has no AUC, written as null.
  if (p.logloss && !p.auc) line["auc"] = nullptr;
  Put(line, "auc", p.auc);
  Put(line, "logloss", p.logloss);
  PutMetrics(p.metrics, &line);
  Put(line, "keys", p.keys);
  Put(line, "unseen_keys", p.unseen_keys);
  Put(line, "rows", p.rows);
  Put(line, "kept_rows", p.kept_rows);
  Put(line, "behind_messages", p.behind_messages);
  Put(line, "behind_seconds", p.behind_seconds);
  Put(line, "calibration_ratio", p.calibration_ratio);
  Put(line, "scored_samples", p.scored_samples);
  Put(line, "auc_standard_error", p.auc_standard_error);
  Put(line, "evicted_rows", p.evicted_rows);
  Put(line, "expired_rows", p.expired_rows);
  Put(line, "pass", p.pass);
  if (p.idle) line["idle"] = JsonOf(*p.idle);
  if (p.busy) line["busy"] = JsonOf(*p.busy);
  if (p.skipped_steps > 0) line["skipped_steps"] = p.skipped_steps;
  if (!p.skipped_data.empty()) line["skipped_data"] = p.skipped_data;
  if (p.decoded_bytes.size() > 1) line["decoded_bytes"] = p.decoded_bytes;
  line["seconds"] = p.seconds;
  line["samples_per_second"] = p.samples_per_second;
  for (size_t i = 0; phases != nullptr && i < kPhases; ++i) {
    if ((*phases)[i] > 0) line["phases"][PhaseName(static_cast<Phase>(i))] = (*phases)[i];
  }
  if (!p.message.empty()) line["message"] = p.message;
  // A message may contain a path that is not valid UTF-8.
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

// The lines of a file that belong to a run up to `place`.
struct KeptLines {
  std::string text;
  double seconds = 0;  // the time of the last line
  bool has_commit = false;
};

// A numeric field of a line; 0 if the line lacks it.
template <typename T>
T Number(const nlohmann::ordered_json& line, const char* name) {
  const auto it = line.find(name);
  const bool fits = it != line.end() &&
                    (std::is_floating_point_v<T> ? it->is_number() : it->is_number_unsigned());
  return fits ? it->get<T>() : T{0};
}

std::optional<report::RunEvent> EventOf(const nlohmann::ordered_json& line) {
  const auto it = line.find("event");
  if (it == line.end() || !it->is_string()) return std::nullopt;
  return report::FindEvent(it->get_ref<const std::string&>());
}

// Up to the commit's line, keeps all lines except those of later steps; after it, only the lines of
// a loss and of a return to this commit (lost, resume, recover).
KeptLines Keep(absl::string_view lines, const MetricsLog::Place& place) {
  KeptLines kept;
  for (const absl::string_view text : absl::StrSplit(lines, '\n')) {
    const auto line = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!line.is_object() || place.pass == 0) break;  // not an object: an incomplete line
    const std::optional<report::RunEvent> event = EventOf(line);
    const bool returns = event == report::RunEvent::kResume ||
                         event == report::RunEvent::kRecover || event == report::RunEvent::kLost;
    if (Number<uint64_t>(line, "iter") > place.iter || event == report::RunEvent::kFinal) continue;
    if (kept.has_commit && !returns) continue;
    kept.has_commit |=
        event == report::RunEvent::kPass && Number<PassId>(line, "pass") == place.pass;
    kept.seconds = Number<double>(line, "seconds");
    absl::StrAppend(&kept.text, text, "\n");
  }
  return kept;
}

// The user chooses a run's folder: an unusable one is an invalid argument.
absl::Status OfOutput(const std::string& folder, const absl::Status& status) {
  if (status.ok() || absl::IsResourceExhausted(status)) return status;
  return absl::InvalidArgumentError(
      absl::StrCat("the output folder ", folder, " cannot be used: ", status.message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsLog>> MetricsLog::Create(
    FileSystem& files, const std::string& out_dir, std::function<void(const Progress&)> watch) {
  std::unique_ptr<MetricsLog> log(new MetricsLog(files));
  log->watch_ = std::move(watch);
  log->start_ = std::chrono::steady_clock::now();
  if (out_dir.empty()) return log;
  CISTERN_RETURN_IF_ERROR(OfOutput(out_dir, files.MakeFolders(out_dir)));
  log->path_ = out_dir + "/metrics.jsonl";
  return log;
}

absl::StatusOr<bool> MetricsLog::StartAt(const Place& place) {
  KeptLines kept;
  if (!path_.empty()) {
    CISTERN_ASSIGN_OR_RETURN(const std::string lines, OldLines());
    kept = Keep(lines, place);
    CISTERN_RETURN_IF_ERROR(OfOutput(ParentFolder(path_), Rewrite(kept.text)));
  }
  // A new process continues from the time of the last line; a rollback keeps this process's clock.
  if (!std::exchange(started_, true)) seconds_before_ = kept.seconds;
  first_ = {seconds(), place.samples};
  marks_.clear();
  held_.reset();
  return kept.has_commit;
}

absl::StatusOr<std::string> MetricsLog::OldLines() const {
  absl::StatusOr<std::string> lines =
      ReadWhole(files_, path_, std::numeric_limits<uint64_t>::max());
  return absl::IsNotFound(lines.status()) ? std::string() : lines;
}

absl::Status MetricsLog::Rewrite(const std::string& lines) {
  const std::string fresh = path_ + ".new";
  const absl::Status removed = files_.Remove(fresh);
  if (!absl::IsNotFound(removed)) CISTERN_RETURN_IF_ERROR(removed);
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, files_.Create(fresh));
  CISTERN_RETURN_IF_ERROR(file->Append(lines));
  // Sync before the rename: a loss of power leaves either the old file or the new one.
  CISTERN_RETURN_IF_ERROR(file->Sync());
  CISTERN_RETURN_IF_ERROR(files_.Replace(fresh, path_));
  file_ = std::move(file);
  return files_.SyncFolder(ParentFolder(path_));
}

double MetricsLog::seconds() const {
  return seconds_before_ +
         std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void MetricsLog::Stamp(Progress& progress) {
  progress.seconds = seconds();
  Mark& mark = marks_.try_emplace(progress.event, first_).first->second;
  const double elapsed = progress.seconds - mark.seconds;
  if (elapsed > 0 && progress.samples >= mark.samples) {
    progress.samples_per_second = static_cast<double>(progress.samples - mark.samples) / elapsed;
  }
  mark = {progress.seconds, progress.samples};
}

void MetricsLog::Append(const std::string& lines) {
  if (file_ == nullptr) return;
  const absl::Status written = file_->Append(lines);  // unbuffered: others read along
  if (written.ok()) return;
  LogWarning(absl::StrCat(path_, " gets no more lines: ", written.message()));
  file_.reset();
}

void MetricsLog::Write(Progress progress) {
  Stamp(progress);
  if (progress.event == report::RunEvent::kFinal) {
    evaluations_.Observe(progress);
    progress.scores = evaluations_.Of(progress);
    if (progress.scores != nullptr) WriteScores(*progress.scores);
  }
  const std::string line = LineOf(progress);
  // A loss is a fact, whether or not the held pass commits.
  if (held_ && progress.event != report::RunEvent::kLost) {
    held_lines_ += line;
  } else {
    Append(line);
  }
  Report(progress);
  Conclude(progress);
}

void MetricsLog::Hold(Progress pass) {
  CISTERN_CHECK(!held_);
  Stamp(pass);
  held_phases_ = phases_.Take();
  held_lines_.clear();
  held_ = pass;
  Conclude(pass);
}

void MetricsLog::Release(const std::function<void(Progress&)>& complete) {
  if (!held_) return;
  Progress pass = *std::exchange(held_, std::nullopt);
  if (complete != nullptr) complete(pass);
  Append(ToLine(pass, &held_phases_) + std::exchange(held_lines_, ""));
  Report(pass);
}

void MetricsLog::Report(const Progress& progress) const {
  if (figures_ != nullptr) figures_->Observe(progress);
  if (watch_) watch_(progress);
}

std::string MetricsLog::LineOf(const Progress& progress) {
  const bool tells = progress.event == report::RunEvent::kPass ||
                     progress.event == report::RunEvent::kEval ||
                     progress.event == report::RunEvent::kFinal;
  if (!tells) return ToLine(progress, nullptr);
  const PhaseSeconds phases = phases_.Take();
  return ToLine(progress, &phases);
}

void MetricsLog::Conclude(const Progress& progress) {
  evaluations_.Observe(progress);
  for (const std::string& message : warnings_.Observe(progress)) {
    Progress warning;
    warning.event = report::RunEvent::kWarning;
    warning.iter = progress.iter;
    warning.samples = progress.samples;
    warning.message = message;
    Write(warning);
  }
}

void MetricsLog::WriteScores(const report::ScoreDetail& scores) const {
  if (path_.empty()) return;
  const std::string path = absl::StrCat(ParentFolder(path_), "/", report::kScoreDetailFile);
  const absl::Status written = WriteWhole(files_, path, report::FormatScoreDetail(scores));
  if (!written.ok()) LogWarning(absl::StrCat(path, " was not written: ", written.message()));
}

std::optional<Phase> MetricsLog::Enter(std::optional<Phase> phase) {
  if (live_ != nullptr && phase) live_->phase.store(*phase, std::memory_order_relaxed);
  const std::optional<Phase> ended = phases_.Enter(phase);
  if (trace_ == nullptr || ended == phase) return ended;
  const SteadyTime now = std::chrono::steady_clock::now();
  if (ended) trace_->AddSpan("training", PhaseName(*ended), phase_begin_, now);
  phase_begin_ = now;
  return ended;
}

}  // namespace cistern
