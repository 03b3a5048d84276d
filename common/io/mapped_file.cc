#include "common/io/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace cistern {

absl::StatusOr<std::unique_ptr<MappedFile>> MappedFile::Open(const std::string& path,
                                                             Access access) {
  CISTERN_ASSIGN_OR_RETURN(OpenedFile opened, OpenFile(path));
  std::unique_ptr<MappedFile> file(new MappedFile(path, std::move(opened.fd)));
  if (opened.bytes == 0) return file;
  void* begin = mmap(nullptr, opened.bytes, PROT_READ, MAP_SHARED, file->fd_.get(), 0);
  if (begin == MAP_FAILED) return ErrnoStatus(errno, "map", path);
  file->begin_ = static_cast<const char*>(begin);
  file->size_ = opened.bytes;
  // A hint; errors do not matter.
  madvise(begin, file->size_, access == Access::kForward ? MADV_SEQUENTIAL : MADV_WILLNEED);
  return file;
}

MappedFile::~MappedFile() {
  if (begin_ != nullptr) munmap(const_cast<char*>(begin_), size_);
}

void MappedFile::Prefetch(const std::function<bool()>& go_on) const {
  constexpr size_t kPiece = size_t{4} << 20;
  for (size_t at = 0; at < size_; at += kPiece) {
    PrefetchPiece(at, std::min(kPiece, size_ - at));
    if (go_on != nullptr && !go_on()) return;
  }
}

void MappedFile::PrefetchPiece(size_t begin, size_t bytes) const {
#ifdef MADV_POPULATE_READ
  if (madvise(const_cast<char*>(begin_ + begin), bytes, MADV_POPULATE_READ) == 0) return;
#endif
  // An older system: touch each page.
  constexpr size_t kPage = 4096;
  for (size_t at = begin; at < begin + bytes; at += kPage) {
    static_cast<void>(*static_cast<const volatile char*>(begin_ + at));
  }
}

absl::Status MappedFile::StillWhole() const {
  struct stat about;
  if (fstat(fd_.get(), &about) == 0 && static_cast<size_t>(about.st_size) >= size_) {
    return absl::OkStatus();
  }
  return WithKind(absl::DataLossError(absl::StrCat(
                      path_, " had ", size_, " bytes and was cut short while it was being read")),
                  ErrorKind::kCutShort);
}

absl::StatusOr<FileIdentity> MappedFile::Identity() const {
  constexpr int64_t kSecond = 1'000'000'000;
  struct stat about;
  if (fstat(fd_.get(), &about) != 0) return ErrnoStatus(errno, "examine", path_);
  return FileIdentity{about.st_dev, about.st_ino, static_cast<uint64_t>(about.st_size),
                      about.st_mtim.tv_sec * kSecond + about.st_mtim.tv_nsec,
                      about.st_ctim.tv_sec * kSecond + about.st_ctim.tv_nsec};
}

}  // namespace cistern
