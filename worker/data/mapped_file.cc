#include "worker/data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "common/file.h"

namespace cistern {

absl::StatusOr<std::unique_ptr<MappedFile>> MappedFile::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "open", path);
  std::unique_ptr<MappedFile> file(new MappedFile(path, fd));
  struct stat about;
  if (fstat(fd, &about) != 0) return ErrnoStatus(errno, "look at", path);
  if (!S_ISREG(about.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a file"));
  }
  if (about.st_size == 0) return file;
  void* begin = mmap(nullptr, static_cast<size_t>(about.st_size), PROT_READ, MAP_SHARED, fd, 0);
  if (begin == MAP_FAILED) return ErrnoStatus(errno, "map", path);
  file->begin_ = static_cast<const char*>(begin);
  file->size_ = static_cast<size_t>(about.st_size);
  madvise(begin, file->size_, MADV_SEQUENTIAL);  // a hint: it may be refused
  return file;
}

MappedFile::~MappedFile() {
  if (begin_ != nullptr) munmap(const_cast<char*>(begin_), size_);
  close(fd_);
}

absl::Status MappedFile::StillWhole() const {
  struct stat about;
  if (fstat(fd_, &about) == 0 && static_cast<size_t>(about.st_size) >= size_) {
    return absl::OkStatus();
  }
  return absl::DataLossError(
      absl::StrCat(path_, " had ", size_, " bytes and was cut short while it was being read"));
}

}  // namespace cistern
