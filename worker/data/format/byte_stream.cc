#include "worker/data/format/byte_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/io/file.h"

namespace cistern {
namespace {

constexpr size_t kFirstBytes = 4096;

}  // namespace

absl::StatusOr<std::unique_ptr<ByteStream>> ByteStream::Open(const std::string& path) {
  if (path == "-") return std::unique_ptr<ByteStream>(new ByteStream(path, FileDescriptor()));
  CISTERN_ASSIGN_OR_RETURN(OpenedFile file, OpenFile(path));
  std::unique_ptr<ByteStream> stream(new ByteStream(path, std::move(file.fd)));
  const int fd = stream->file_.get();
  posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);  // so that the kernel reads ahead
  return stream;
}

// Grows in steps, because a corrupt count can request far more bytes than the source has.
void ByteStream::Grow(size_t most) {
  buffer_.resize(std::min(most, std::max(4 * buffer_.size(), kFirstBytes)));
}

absl::Status ByteStream::Fill(size_t n) {
  if (available() >= n || at_end_) return absl::OkStatus();
  const int fd = file_.is_open() ? file_.get() : STDIN_FILENO;
  if (begin_ > 0) std::memmove(buffer_.data(), buffer_.data() + begin_, available());
  end_ -= begin_;
  begin_ = 0;
  if (filled_ && buffer_.size() < kBufferBytes) Grow(kBufferBytes);
  while (end_ < n) {
    if (end_ == buffer_.size()) Grow(n);
    const ssize_t got = read(fd, buffer_.data() + end_, buffer_.size() - end_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return absl::ErrnoToStatus(errno,
                                 absl::StrCat("cannot read ", path_, " at byte ", offset_ + end_));
    }
    if (got == 0) {
      at_end_ = true;
      break;
    }
    end_ += static_cast<size_t>(got);
  }
  filled_ = end_ == buffer_.size();
  return absl::OkStatus();
}

}  // namespace cistern
