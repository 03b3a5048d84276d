#include "common/io/byte_source.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "common/io/file.h"

namespace cistern {
namespace {

class FileSource : public ByteSource {
 public:
  // fd: not open for standard input.
  FileSource(std::string path, FileDescriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  absl::StatusOr<size_t> Read(char* out, size_t size) override {
    const int fd = fd_.is_open() ? fd_.get() : STDIN_FILENO;
    while (true) {
      const ssize_t got = read(fd, out, size);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) {
        return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path_, " at byte ", bytes_));
      }
      bytes_ += static_cast<uint64_t>(got);
      return static_cast<size_t>(got);
    }
  }

  absl::StatusOr<bool> Seek(uint64_t offset) override {
    if (!fd_.is_open()) return false;
    if (lseek(fd_.get(), static_cast<off_t>(offset), SEEK_SET) < 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path_, " at byte ", offset));
    }
    bytes_ = offset;
    return true;
  }

  uint64_t file_bytes_read() const override { return bytes_; }
  const std::string& path() const override { return path_; }

 private:
  const std::string path_;
  const FileDescriptor fd_;
  uint64_t bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ByteSource>> OpenFileSource(const std::string& path) {
  if (path == "-") return std::make_unique<FileSource>(path, FileDescriptor());
  CISTERN_ASSIGN_OR_RETURN(OpenedFile file, OpenFile(path));
  posix_fadvise(file.fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);  // so that the kernel reads ahead
  return std::make_unique<FileSource>(path, std::move(file.fd));
}

}  // namespace cistern
