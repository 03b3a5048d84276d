#include "worker/data/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "common/check.h"
#include "common/file.h"

namespace cistern {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Create(const std::string& path) {
  const std::string temporary = path + ".tmp";
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot create ", temporary));
  return std::unique_ptr<OutputFile>(new OutputFile(path, fd));
}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(temporary_path().c_str());
}

absl::Status OutputFile::Append(absl::string_view bytes) {
  CISTERN_RETURN_IF_ERROR(status_);
  buffer_.append(bytes.data(), bytes.size());
  return buffer_.size() < kBufferBytes ? absl::OkStatus() : Flush();
}

absl::Status OutputFile::WriteAt(uint64_t offset, absl::string_view bytes) {
  CISTERN_RETURN_IF_ERROR(Flush());
  CISTERN_CHECK(offset + bytes.size() <= written_);
  status_ = Write(bytes, offset);
  return status_;
}

absl::Status OutputFile::Close() {
  CISTERN_RETURN_IF_ERROR(Flush());
  status_ = Finish();
  if (!status_.ok()) unlink(temporary_path().c_str());
  return status_;
}

absl::Status OutputFile::Finish() {
  const absl::Status synced = SyncToDisk(fd_, path_);
  // Some file systems report a full disk only here.
  const int closed = close(std::exchange(fd_, -1));
  CISTERN_RETURN_IF_ERROR(synced);
  if (closed == 0 && std::rename(temporary_path().c_str(), path_.c_str()) == 0) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot complete ", path_));
}

absl::Status OutputFile::Flush() {
  CISTERN_RETURN_IF_ERROR(status_);
  status_ = Write(buffer_, written_);
  CISTERN_RETURN_IF_ERROR(status_);
  written_ += buffer_.size();
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status OutputFile::Write(absl::string_view bytes, uint64_t offset) {
  CISTERN_CHECK(fd_ >= 0);
  while (!bytes.empty()) {
    const ssize_t put = pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path_, " at byte ", offset));
    }
    bytes.remove_prefix(static_cast<size_t>(put));
    offset += static_cast<uint64_t>(put);
  }
  return absl::OkStatus();
}

}  // namespace cistern
