#include "common/io/line_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace cistern {

absl::StatusOr<std::unique_ptr<LineLog>> LineLog::Open(const LineLogOptions& options) {
  std::unique_ptr<LineLog> log(new LineLog(options));
  absl::Status opened = options.appends ? log->FollowPath() : log->BeginFile();
  if (!opened.ok()) return WithCode(opened, absl::StatusCode::kInvalidArgument);
  return log;
}

absl::Status LineLog::NotAFile() const {
  return absl::InvalidArgumentError(
      absl::StrCat(options_.name, " ", options_.path, " is not a file; name a file, or a new one"));
}

// Renames an older file, and creates a new one.
absl::Status LineLog::BeginFile() {
  const std::string& path = options_.path;
  const std::string full = path + ".1";
  // Only a file of ours may be renamed: as root, a device could be too.
  struct stat status = {};
  if (lstat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) return NotAFile();
  if (std::rename(path.c_str(), full.c_str()) != 0 && errno != ENOENT) {
    return absl::InvalidArgumentError(absl::StrCat(
        options_.name, " ", path, " cannot be renamed to ", full, ": ", std::strerror(errno)));
  }
  return CreateFile();
}

absl::Status LineLog::CreateFile() {
  const std::string& path = options_.path;
  const int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(options_.name, " ", path, " cannot be created: ", std::strerror(errno)));
  }
  file_ = FileDescriptor(fd);
  file_bytes_ = 0;
  return absl::OkStatus();
}

// Makes `file_` the file that has the path now.
absl::Status LineLog::FollowPath() {
  const std::string& path = options_.path;
  struct stat named = {}, opened = {};
  if (lstat(path.c_str(), &named) != 0) {
    return errno == ENOENT ? CreateFile() : ErrnoStatus(errno, "find", path);
  }
  if (!S_ISREG(named.st_mode)) return NotAFile();
  file_bytes_ = static_cast<uint64_t>(named.st_size);
  if (file_.is_open() && fstat(file_.get(), &opened) == 0 && opened.st_dev == named.st_dev &&
      opened.st_ino == named.st_ino) {
    return absl::OkStatus();
  }
  const int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "open", path);
  file_ = FileDescriptor(fd);
  return absl::OkStatus();
}

absl::Status LineLog::Write(absl::string_view line) {
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

}  // namespace cistern
