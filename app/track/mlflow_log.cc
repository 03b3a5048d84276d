#include "app/track/mlflow_log.h"

#include <filesystem>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "app/track/event_figures.h"
#include "common/base/hash.h"
#include "common/base/hash_text.h"
#include "common/base/version.h"
#include "common/io/new_file.h"

namespace cistern::app {
namespace {

// MLflow's numbers for the state of a run.
constexpr int kRunning = 1, kFinished = 3, kFailed = 4, kKilled = 5;
constexpr size_t kMaxParameterBytes = 500;  // of a value; older versions accept no more

int64_t NowMs() {
  return absl::ToUnixMillis(absl::Now());
}

// A double-quoted scalar of YAML, which is what JSON has for a string.
std::string Quoted(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) < ' ') {
      absl::StrAppendFormat(&quoted, "\\x%02x", static_cast<int>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

// "file:///..." of a path, with other bytes than those of plain names escaped.
std::string FileUri(const std::string& path) {
  std::error_code error;  // without a current folder the path stays relative
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  std::string uri = "file://";
  for (const char c : error ? path : absolute.lexically_normal().string()) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("/-._~", c)) {
      uri += c;
    } else {
      absl::StrAppendFormat(&uri, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return uri;
}

// A name as MLflow allows it, which becomes a path: "layers[0].name" -> "layers.0.name". Empty if
// nothing is left, or a part of it would be "." or "..".
std::string AllowedName(absl::string_view path) {
  std::string name;
  for (const char c : path) {
    if (c == ']') continue;
    const bool allowed =
        absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("_-. ", c);
    name += c == '[' ? '.' : allowed ? c : '_';
  }
  return name.empty() || name[0] == '.' ? "" : name.substr(0, 200);
}

// Lines "timestamp value step" up to a step.
std::string LinesUpTo(absl::string_view text, uint64_t iter) {
  std::string kept;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, ' ');
    uint64_t step = 0;
    if (fields.size() != 3 || !absl::SimpleAtoi(fields[2], &step) || step > iter) continue;
    absl::StrAppend(&kept, line, "\n");
  }
  return kept;
}

absl::StatusOr<std::string> ReadText(FileSystem& files, const std::string& path) {
  return ReadWhole(files, path, std::numeric_limits<uint64_t>::max());
}

}  // namespace

std::string MlflowRunId(const std::string& id) {
  const uint64_t first = HashBytes(id);
  return HashText(first) + HashText(HashPair(first, id.size()));
}

MlflowLog::MlflowLog(FileSystem& files, const TrackedRun& run, const std::string& store)
    : files_(files),
      run_id_(MlflowRunId(run.id)),
      name_(run.name),
      store_(store),
      folder_(absl::StrCat(store, "/0/", run_id_)) {}

absl::StatusOr<std::unique_ptr<Tracker>> MlflowLog::Open(FileSystem& files, const TrackedRun& run) {
  std::unique_ptr<MlflowLog> log(new MlflowLog(files, run, run.folder + "/mlruns"));
  CISTERN_RETURN_IF_ERROR(log->Begin(run));
  return log;
}

absl::Status MlflowLog::Begin(const TrackedRun& run) {
  for (const char* part : {"metrics", "params", "tags", "artifacts"}) {
    CISTERN_RETURN_IF_ERROR(files_.MakeFolders(absl::StrCat(folder_, "/", part)));
  }
  CISTERN_RETURN_IF_ERROR(WriteExperiment(store_ + "/0"));
  start_ms_ = NowMs();
  const absl::StatusOr<std::string> earlier = ReadText(files_, folder_ + "/meta.yaml");
  if (earlier.ok()) {
    for (const absl::string_view line : absl::StrSplit(*earlier, '\n')) {
      absl::string_view rest = line;
      if (absl::ConsumePrefix(&rest, "start_time: ")) (void)absl::SimpleAtoi(rest, &start_ms_);
    }
  }
  CISTERN_RETURN_IF_ERROR(WriteRun(kRunning, 0));
  CISTERN_RETURN_IF_ERROR(WriteWhole(files_, folder_ + "/tags/mlflow.runName", name_));
  CISTERN_RETURN_IF_ERROR(WriteWhole(files_, folder_ + "/tags/mlflow.source.name", "cistern"));
  CISTERN_RETURN_IF_ERROR(WriteWhole(files_, folder_ + "/tags/cistern.run_id", run.id));
  CISTERN_RETURN_IF_ERROR(WriteWhole(files_, folder_ + "/tags/cistern.version", kVersion));
  return WriteParameters(run);
}

absl::Status MlflowLog::WriteExperiment(const std::string& folder) {
  const std::string path = folder + "/meta.yaml";
  CISTERN_ASSIGN_OR_RETURN(const bool there, files_.Exists(path));
  if (there) return absl::OkStatus();
  const int64_t now = NowMs();
  return WriteWhole(
      files_, path,
      absl::StrCat("artifact_location: ", Quoted(FileUri(folder)), "\ncreation_time: ", now,
                   "\nexperiment_id: '0'\n", "last_update_time: ", now,
                   "\nlifecycle_stage: active\n", "name: Default\n"));
}

absl::Status MlflowLog::WriteRun(int status, int64_t end_ms) {
  return WriteWhole(
      files_, folder_ + "/meta.yaml",
      absl::StrCat("artifact_uri: ", Quoted(FileUri(folder_ + "/artifacts")), "\nend_time: ",
                   end_ms == 0 ? "null" : absl::StrCat(end_ms), "\nentry_point_name: ''\n",
                   "experiment_id: '0'\nlifecycle_stage: active\nrun_id: ", run_id_,
                   "\nrun_name: ", Quoted(name_), "\nrun_uuid: ", run_id_,
                   "\nsource_name: ''\nsource_type: 4\nsource_version: ''\nstart_time: ", start_ms_,
                   "\nstatus: ", status, "\ntags: []\nuser_id: ''\n"));
}

absl::Status MlflowLog::WriteParameters(const TrackedRun& run) {
  for (const auto& [path, value] : run.values) {
    const std::string name = AllowedName(path);
    if (name.empty()) continue;
    const std::string file = absl::StrCat(folder_, "/params/", name);
    // A resumed run keeps its values: MLflow refuses to change one.
    CISTERN_ASSIGN_OR_RETURN(const bool there, files_.Exists(file));
    if (there) continue;
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> created, files_.Create(file));
    CISTERN_RETURN_IF_ERROR(
        created->Append(absl::string_view(value).substr(0, kMaxParameterBytes)));
    CISTERN_RETURN_IF_ERROR(created->Close());
  }
  return absl::OkStatus();
}

absl::StatusOr<WritableFile*> MlflowLog::FileOf(const std::string& figure) {
  std::unique_ptr<WritableFile>& file = open_[figure];
  if (file != nullptr) return file.get();
  const std::string path = absl::StrCat(folder_, "/metrics/", figure);
  CISTERN_RETURN_IF_ERROR(files_.MakeFolders(path.substr(0, path.rfind('/'))));
  // Files grow only under the descriptor that created them, so earlier lines are copied.
  const absl::StatusOr<std::string> lines = ReadText(files_, path);
  if (!lines.ok() && !absl::IsNotFound(lines.status())) return lines.status();
  const std::string fresh = path + ".new";
  const absl::Status removed = files_.Remove(fresh);
  if (!absl::IsNotFound(removed)) CISTERN_RETURN_IF_ERROR(removed);
  CISTERN_ASSIGN_OR_RETURN(file, files_.Create(fresh));
  file->WillBeRead();  // each value reaches the file at once
  if (lines.ok()) CISTERN_RETURN_IF_ERROR(file->Append(*lines));
  CISTERN_RETURN_IF_ERROR(files_.Replace(fresh, path));
  return file.get();
}

absl::Status MlflowLog::TakeBack(uint64_t iter) {
  open_.clear();
  const std::string metrics = folder_ + "/metrics";
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> events, files_.List(metrics));
  for (const std::string& event : events) {
    const std::string folder = absl::StrCat(metrics, "/", event);
    CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> figures, files_.List(folder));
    for (const std::string& figure : figures) {
      const std::string path = absl::StrCat(folder, "/", figure);
      CISTERN_ASSIGN_OR_RETURN(const std::string lines, ReadText(files_, path));
      const std::string kept = LinesUpTo(lines, iter);
      if (kept.empty()) {  // MLflow refuses a figure without a value
        CISTERN_RETURN_IF_ERROR(files_.Remove(path));
      } else if (kept != lines) {
        CISTERN_RETURN_IF_ERROR(WriteWhole(files_, path, kept));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status MlflowLog::Observe(const Progress& progress) {
  if (TakesBack(progress)) return TakeBack(progress.iter);
  const int64_t now = NowMs();
  for (const auto& [name, value] : FiguresOf(progress)) {
    CISTERN_ASSIGN_OR_RETURN(WritableFile* const file, FileOf(name));
    CISTERN_RETURN_IF_ERROR(
        file->Append(absl::StrFormat("%d %.17g %d\n", now, value, progress.iter)));
  }
  return absl::OkStatus();
}

absl::Status MlflowLog::End(RunOutcome outcome) {
  for (auto& [name, file] : open_) {
    if (file != nullptr) CISTERN_RETURN_IF_ERROR(file->Close());
  }
  open_.clear();
  const int status = outcome == RunOutcome::kFinished      ? kFinished
                     : outcome == RunOutcome::kInterrupted ? kKilled
                                                           : kFailed;
  return WriteRun(status, NowMs());
}

}  // namespace cistern::app
