#include "common/io/direct_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "common/io/file.h"

namespace cistern {

absl::Status DirectWriter::Append(absl::string_view bytes) {
  if (cached_) return Write(bytes);
  if (filling_.size() == 0) filling_ = AlignedBuffer(kPieceBytes);
  while (!bytes.empty()) {
    const size_t size = std::min(bytes.size(), kPieceBytes - filled_);
    std::memcpy(filling_.data() + filled_, bytes.data(), size);
    filled_ += size;
    bytes.remove_prefix(size);
    if (filled_ == kPieceBytes) CISTERN_RETURN_IF_ERROR(HandOver());
  }
  return absl::OkStatus();
}

absl::Status DirectWriter::Flush() {
  CISTERN_RETURN_IF_ERROR(Await());
  const absl::string_view rest(filling_.data(), std::exchange(filled_, 0));
  const size_t whole = direct_ ? AlignedBuffer::RoundDown(rest.size()) : 0;
  CISTERN_RETURN_IF_ERROR(Write(rest.substr(0, whole)));
  CISTERN_RETURN_IF_ERROR(EndDirect());
  CISTERN_RETURN_IF_ERROR(Write(rest.substr(whole)));
  cached_ = true;
  thread_.reset();
  filling_ = AlignedBuffer();
  writing_ = AlignedBuffer();
  return absl::OkStatus();
}

absl::Status DirectWriter::HandOver() {
  CISTERN_RETURN_IF_ERROR(Await());
  if (thread_ == nullptr) {
    thread_ = std::make_unique<ThreadPool>(1);
    writing_ = AlignedBuffer(kPieceBytes);
    const int flags = fcntl(fd_, F_GETFL);
    direct_ = flags >= 0 && fcntl(fd_, F_SETFL, flags | O_DIRECT) == 0;
  }
  std::swap(filling_, writing_);
  filled_ = 0;
  {
    absl::MutexLock lock(&mutex_);
    busy_ = true;
  }
  thread_->Run([this] {
    result_ = Write({writing_.data(), kPieceBytes});
    absl::MutexLock lock(&mutex_);
    busy_ = false;
  });
  return absl::OkStatus();
}

absl::Status DirectWriter::Await() {
  absl::MutexLock lock(&mutex_);
  const auto idle = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !busy_; };
  mutex_.Await(absl::Condition(&idle));
  return result_;
}

absl::Status DirectWriter::Write(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = write(fd_, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && (errno != EINVAL || !direct_)) {
      const int error = errno;
      return WriteError(error, static_cast<uint64_t>(lseek(fd_, 0, SEEK_CUR)), path_);
    }
    if (wrote >= 0) {
      bytes.remove_prefix(static_cast<size_t>(wrote));
      StartWriteback(static_cast<size_t>(wrote));
    }
    // Plain writes, if the file system rejects O_DIRECT after all or stopped within a block.
    if (wrote < 0 || !AlignedBuffer::IsAligned(bytes.size())) CISTERN_RETURN_IF_ERROR(EndDirect());
  }
  return absl::OkStatus();
}

// Without this the kernel would hold the bytes back until Sync, which reports write-back errors.
void DirectWriter::StartWriteback(size_t more) {
  constexpr int64_t kBytes = int64_t{8} << 20;
  if (direct_) return;
  written_ += static_cast<int64_t>(more);
  if (written_ - started_ < kBytes) return;
  sync_file_range(fd_, 0, 0, SYNC_FILE_RANGE_WRITE);
  started_ = written_;
}

absl::Status DirectWriter::EndDirect() {
  if (!std::exchange(direct_, false)) return absl::OkStatus();
  const int flags = fcntl(fd_, F_GETFL);
  if (flags >= 0 && fcntl(fd_, F_SETFL, flags & ~O_DIRECT) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, "write", path_);
}

}  // namespace cistern
