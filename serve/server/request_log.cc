#include "serve/server/request_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>

#include "serve/server/json_text.h"

namespace cistern {
namespace {

// Lines that wait for the disk; above it further ones are dropped.
constexpr uint64_t kMostWaitingBytes = uint64_t{64} << 20;

absl::Status NotAFile(const std::string& path) {
  return absl::InvalidArgumentError(
      absl::StrCat("the request log ", path, " is not a file; name a file, or a new one"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RequestLog>> RequestLog::Open(const RequestLogOptions& options) {
  if (!(options.share >= 0 && options.share <= 1)) {
    return WithOptions(absl::InvalidArgumentError(
                           absl::StrCat("the share of logged requests is ", options.share,
                                        ", which is not in 0 to 1; 0.01 logs one of a hundred")),
                       {"log_share"});
  }
  auto log = std::unique_ptr<RequestLog>(new RequestLog(options));
  CISTERN_RETURN_IF_ERROR(log->BeginFile());
  log->thread_ = std::make_unique<ThreadPool>(1);
  return log;
}

RequestLog::~RequestLog() {
  thread_ = nullptr;
}

// Renames an older file, and creates a new one.
absl::Status RequestLog::BeginFile() {
  const std::string& path = options_.path;
  const std::string full = path + ".1";
  // Only a file of ours may be renamed: as root, a device could be too.
  struct stat status = {};
  if (lstat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) return NotAFile(path);
  if (std::rename(path.c_str(), full.c_str()) != 0 && errno != ENOENT) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the request log ", path, " cannot be renamed to ", full, ": ", std::strerror(errno)));
  }
  return CreateFile();
}

absl::Status RequestLog::CreateFile() {
  const std::string& path = options_.path;
  const int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request log ", path, " cannot be created: ", std::strerror(errno)));
  }
  file_ = FileDescriptor(fd);
  file_bytes_ = 0;
  return absl::OkStatus();
}

// Makes `file_` the file that has the path now.
absl::Status RequestLog::FollowPath() {
  const std::string& path = options_.path;
  struct stat named = {}, opened = {};
  if (lstat(path.c_str(), &named) != 0) {
    return errno == ENOENT ? CreateFile() : ErrnoStatus(errno, "find", path);
  }
  if (!S_ISREG(named.st_mode)) return NotAFile(path);
  file_bytes_ = static_cast<uint64_t>(named.st_size);
  if (fstat(file_.get(), &opened) == 0 && opened.st_dev == named.st_dev &&
      opened.st_ino == named.st_ino) {
    return absl::OkStatus();
  }
  const int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "open", path);
  file_ = FileDescriptor(fd);
  return absl::OkStatus();
}

bool RequestLog::Chooses() {
  const auto n = static_cast<double>(seen_.fetch_add(1, std::memory_order_relaxed));
  return std::floor((n + 1) * options_.share) > std::floor(n * options_.share);
}

void RequestLog::Add(const std::string& id, const PredictorShape& shape,
                     const PredictRequest& request, absl::Span<const float> predictions,
                     uint64_t commit, uint64_t unseen) {
  if (waiting_bytes_.load(std::memory_order_relaxed) >= kMostWaitingBytes) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  std::string line = RequestLogLine(id, shape, request, predictions, commit, unseen);
  if (!options_.serving.empty()) {
    line.resize(line.size() - 2);  // "}\n"
    line += ",\"serving\":";
    AppendJsonString(&line, options_.serving);
    line += "}\n";
  }
  waiting_bytes_.fetch_add(line.size(), std::memory_order_relaxed);
  thread_->Run([this, line = std::move(line)] {
    Write(line);
    waiting_bytes_.fetch_sub(line.size(), std::memory_order_relaxed);
  });
}

absl::Status RequestLog::TryWrite(const std::string& line) {
  CISTERN_RETURN_IF_ERROR(FollowPath());
  if (file_bytes_ > 0 && file_bytes_ + line.size() > options_.max_bytes) {
    CISTERN_RETURN_IF_ERROR(BeginFile());
  }
  absl::Status written = WriteFully(file_.get(), line, options_.path);
  // Half a line would hide the next one.
  if (!written.ok() && ftruncate(file_.get(), static_cast<off_t>(file_bytes_)) != 0) {
    written = AddContext(written, std::strerror(errno));
  }
  return written;
}

void RequestLog::Write(const std::string& line) {
  const absl::Status written = TryWrite(line);
  faults_.Report(written, "requests are answered, but not logged");
  (written.ok() ? logged_ : dropped_).fetch_add(1, std::memory_order_relaxed);
}

std::string RequestLogLine(const std::string& id, const PredictorShape& shape,
                           const PredictRequest& request, absl::Span<const float> predictions,
                           uint64_t commit, uint64_t unseen) {
  std::string line = absl::StrCat("{\"commit\":", commit, ",\"id\":");
  AppendJsonString(&line, id);
  absl::StrAppend(&line, ",\"samples\":", request.samples, ",\"dense\":");
  AppendJsonArray(&line, request.dense);
  absl::StrAppend(&line, ",\"inputs\":[");
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    absl::StrAppend(&line, i > 0 ? "," : "", "{\"name\":");
    AppendJsonString(&line, shape.inputs[i].name);
    absl::StrAppend(&line, ",\"keys\":");
    AppendJsonArray(&line, request.inputs[i].keys);
    absl::StrAppend(&line, ",\"offsets\":");
    AppendJsonArray(&line, request.inputs[i].offsets);
    line.push_back('}');
  }
  absl::StrAppend(&line, "],\"unseen_keys\":", unseen, ",\"probability\":");
  AppendJsonArray(&line, predictions);
  absl::StrAppend(&line, "}\n");
  return line;
}

}  // namespace cistern
