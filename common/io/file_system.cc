// LocalFileSystem: each call resolves its path to an open folder and a name relative to it.
#include "common/io/file_system.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "common/base/aligned_buffer.h"
#include "common/base/check.h"
#include "common/io/direct_writer.h"
#include "common/io/file.h"

namespace cistern {
namespace {

// A path, cut where the folder ends that the user chose.
struct CutPath {
  std::string chosen;              // as the path to open
  std::vector<std::string> below;  // at least one name
};

// kInvalidArgument: a name below the chosen folder is empty, "." or "..".
absl::StatusOr<CutPath> Cut(const FilePath& path) {
  const std::string& text = path.text();
  const size_t last = text.rfind('/');
  const bool in_here = path.chosen_bytes() == 0 && last == std::string::npos;
  const size_t end = path.chosen_bytes() > 0 ? path.chosen_bytes() - 1 : in_here ? 0 : last;
  absl::string_view below = absl::string_view(text).substr(end);
  absl::ConsumePrefix(&below, "/");
  CutPath cut{in_here ? "." : end == 0 ? "/" : text.substr(0, end), absl::StrSplit(below, '/')};
  for (const std::string& name : cut.below) {
    if (!name.empty() && name != "." && name != ".." && name.find('\0') == std::string::npos) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' does not end with a file name"));
  }
  return cut;
}

// Opens the folder `names` below `root` in one call; closed if the kernel or a filter of system
// calls refuses that.
FileDescriptor OpenAtOnce(int root, absl::Span<const std::string> names) {
  open_how how = {};
  how.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const std::string path = absl::StrJoin(names, "/");
  return FileDescriptor(
      static_cast<int>(syscall(SYS_openat2, root, path.c_str(), &how, sizeof(how))));
}

// Opens the folder `names` below the folder `chosen`, without following links after that. Whatever
// is renamed meanwhile, the folder was below `chosen` when it was opened.
absl::StatusOr<FileDescriptor> OpenBelow(std::string chosen, absl::Span<const std::string> names) {
  CISTERN_ASSIGN_OR_RETURN(FileDescriptor folder, OpenFolder(chosen));
  if (names.empty()) return folder;
  FileDescriptor at_once = OpenAtOnce(folder.get(), names);
  if (at_once.is_open()) return at_once;
  // One name after the other is as safe, works with every kernel, and tells which name is at fault.
  for (const std::string& name : names) {
    absl::StrAppend(&chosen, "/", name);
    CISTERN_ASSIGN_OR_RETURN(folder, OpenFolderAt(folder.get(), name, chosen));
  }
  return folder;
}

absl::StatusOr<FileDescriptor> OpenWhole(const FilePath& path) {
  if (path.chosen_bytes() == 0) return OpenFolder(path.text());
  CISTERN_ASSIGN_OR_RETURN(const CutPath cut, Cut(path));
  return OpenBelow(cut.chosen, cut.below);
}

// A name in an open folder.
struct Place {
  FileDescriptor folder;
  std::string leaf;
  std::string path;  // the full path, for error messages
};

absl::StatusOr<Place> Locate(const FilePath& path) {
  CISTERN_ASSIGN_OR_RETURN(const CutPath cut, Cut(path));
  Place place{FileDescriptor(), cut.below.back(), path.text()};
  const absl::Span<const std::string> folders(cut.below.data(), cut.below.size() - 1);
  CISTERN_ASSIGN_OR_RETURN(place.folder, OpenBelow(cut.chosen, folders));
  return place;
}

// Two names in one open folder.
struct Renaming {
  Place from;
  std::string to_leaf, to_path;
};

absl::StatusOr<Renaming> LocateBoth(const FilePath& from, const FilePath& to) {
  const std::filesystem::path target(to.text());
  Renaming renaming{Place(), target.filename().string(), to.text()};
  CISTERN_ASSIGN_OR_RETURN(renaming.from, Locate(from));
  const std::filesystem::path folder = std::filesystem::path(from.text()).parent_path();
  if (folder.lexically_normal() == target.parent_path().lexically_normal() &&
      !renaming.to_leaf.empty()) {
    return renaming;
  }
  return absl::InvalidArgumentError(absl::StrCat("cannot rename ", from.text(), " to ", to.text(),
                                                 ", which is in another folder"));
}

class LocalWritableFile : public WritableFile {
 public:
  LocalWritableFile(FileDescriptor fd, const std::string& path)
      : fd_(std::move(fd)), path_(path), writer_(fd_.get(), path) {}

  absl::Status Append(absl::string_view bytes) override {
    if (status_.ok()) status_ = writer_.Append(bytes);
    appended_ += bytes.size();
    return status_;
  }

  absl::Status WriteAt(uint64_t offset, absl::string_view bytes) override {
    CISTERN_CHECK(offset + bytes.size() <= appended_);
    if (status_.ok()) status_ = writer_.Flush();
    if (status_.ok()) status_ = WriteFullyAt(fd_.get(), offset, bytes, path_);
    return status_;
  }

  absl::Status Sync() override {
    if (status_.ok()) status_ = writer_.Flush();
    if (status_.ok()) status_ = SyncToDisk(fd_.get(), path_);
    return status_;
  }

  absl::Status Close() override {
    if (status_.ok()) status_ = writer_.Flush();
    CISTERN_RETURN_IF_ERROR(status_);
    status_ = fd_.Close(path_);
    CISTERN_RETURN_IF_ERROR(status_);
    status_ = absl::FailedPreconditionError(absl::StrCat(path_, " is closed"));
    return absl::OkStatus();
  }

  void WillBeRead() override {
    if (status_.ok()) status_ = writer_.Flush();
  }

 private:
  FileDescriptor fd_;
  const std::string path_;
  DirectWriter writer_;
  uint64_t appended_ = 0;
  absl::Status status_;  // the first error
};

// Large reads into aligned memory bypass the page cache.
class LocalReadableFile : public ReadableFile {
 public:
  LocalReadableFile(OpenedFile file, std::string path, std::shared_ptr<ReadQueue> reads)
      : file_(std::move(file)), path_(std::move(path)), reads_(std::move(reads)) {
    if (file_.bytes < kDirectBytes) return;
    // Reopens the file itself, even if its name now refers to another file. Without /proc, or on a
    // file system without O_DIRECT, every read is a plain one.
    const std::string same = absl::StrCat("/proc/self/fd/", file_.fd.get());
    direct_ = FileDescriptor(open(same.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  }

  uint64_t bytes() const override { return file_.bytes; }

  absl::Status Read(uint64_t offset, size_t size, char* out) const override {
    size_t total = ReadDirect(offset, size, out);
    while (total < size) {
      const ssize_t got =
          pread(file_.fd.get(), out + total, size - total, static_cast<off_t>(offset + total));
      if (got < 0 && errno != EINTR) return ErrnoStatus(errno, "read", path_);
      if (got == 0) {
        return absl::DataLossError(absl::StrCat(path_, " ends at byte ", offset + total,
                                                ", before byte ", offset + size,
                                                ": the file was truncated"));
      }
      if (got > 0) total += static_cast<size_t>(got);
    }
    return absl::OkStatus();
  }

  absl::Status ReadMany(absl::Span<const ReadRequest> requests) const override {
    std::vector<size_t> got;
    reads_->Read(direct_.is_open() ? direct_.get() : file_.fd.get(), requests, &got);
    for (size_t i = 0; i < requests.size(); ++i) {
      const ReadRequest& request = requests[i];
      const uint64_t in_file = request.offset < file_.bytes ? file_.bytes - request.offset : 0;
      const size_t size = std::min<uint64_t>(request.size, in_file);
      if (got[i] >= size) continue;
      // A plain read gets the rest, or reports the error.
      CISTERN_RETURN_IF_ERROR(Read(request.offset + got[i], size - got[i], request.out + got[i]));
    }
    return absl::OkStatus();
  }

 private:
  static constexpr size_t kDirectBytes = size_t{256} << 10;

  // Returns the number of bytes read at `offset`; the plain read that follows reports any error.
  size_t ReadDirect(uint64_t offset, size_t size, char* out) const {
    const uint64_t misplaced = reinterpret_cast<uintptr_t>(out) | offset;
    if (!direct_.is_open() || size < kDirectBytes || !AlignedBuffer::IsAligned(misplaced)) {
      return 0;
    }
    const size_t whole = AlignedBuffer::RoundDown(size);
    size_t done = 0;
    while (done < whole) {
      const ssize_t got =
          pread(direct_.get(), out + done, whole - done, static_cast<off_t>(offset + done));
      if (got <= 0) break;
      done += static_cast<size_t>(got);
    }
    return done;
  }

  const OpenedFile file_;
  FileDescriptor direct_;  // the same file
  const std::string path_;
  const std::shared_ptr<ReadQueue> reads_;
};

// Closing the descriptor releases the lock.
class LocalFileLock : public FileLock {
 public:
  explicit LocalFileLock(FileDescriptor fd) : fd_(std::move(fd)) {}

 private:
  const FileDescriptor fd_;
};

bool SameFile(int folder, const std::string& a, const std::string& b) {
  struct stat of_a, of_b;
  return fstatat(folder, a.c_str(), &of_a, AT_SYMLINK_NOFOLLOW) == 0 &&
         fstatat(folder, b.c_str(), &of_b, AT_SYMLINK_NOFOLLOW) == 0 &&
         of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

// Publish for file systems (NFS, some FUSE ones) without RENAME_NOREPLACE: creating a hard link is
// exclusive everywhere. Returns an errno value.
int LinkThenUnlink(int folder, const std::string& from, const std::string& to) {
  if (linkat(folder, from.c_str(), folder, to.c_str(), 0) != 0) {
    // NFS reports EEXIST for our own link if the first reply was lost.
    if (errno != EEXIST) return errno;
    if (!SameFile(folder, from, to)) return EEXIST;
  }
  unlinkat(folder, from.c_str(), 0);  // a leftover name is harmless
  return 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<WritableFile>> LocalFileSystem::Create(const FilePath& path) {
  return CreateWithMode(path, 0666);
}

absl::StatusOr<std::unique_ptr<WritableFile>> LocalFileSystem::CreatePrivate(const FilePath& path) {
  return CreateWithMode(path, 0600);
}

absl::StatusOr<std::unique_ptr<WritableFile>> LocalFileSystem::CreateWithMode(const FilePath& path,
                                                                              unsigned mode) {
  CISTERN_ASSIGN_OR_RETURN(const Place place, Locate(path));
  CISTERN_ASSIGN_OR_RETURN(FileDescriptor fd,
                           CreateFileAt(place.folder.get(), place.leaf, place.path, mode));
  return std::make_unique<LocalWritableFile>(std::move(fd), place.path);
}

absl::StatusOr<std::unique_ptr<ReadableFile>> LocalFileSystem::Open(const FilePath& path) {
  CISTERN_ASSIGN_OR_RETURN(const Place place, Locate(path));
  CISTERN_ASSIGN_OR_RETURN(OpenedFile file, OpenFileAt(place.folder.get(), place.leaf, place.path));
  return std::make_unique<LocalReadableFile>(std::move(file), place.path, reads_);
}

absl::Status ReadableFile::ReadMany(absl::Span<const ReadRequest> requests) const {
  for (const ReadRequest& request : requests) {
    const uint64_t in_file = request.offset < bytes() ? bytes() - request.offset : 0;
    CISTERN_RETURN_IF_ERROR(
        Read(request.offset, std::min<uint64_t>(request.size, in_file), request.out));
  }
  return absl::OkStatus();
}

absl::Status LocalFileSystem::MakeFolders(const FilePath& path) {
  if (path.chosen_bytes() == 0) return cistern::MakeFolders(path.text());
  CISTERN_ASSIGN_OR_RETURN(const CutPath cut, Cut(path));
  CISTERN_RETURN_IF_ERROR(cistern::MakeFolders(cut.chosen));
  CISTERN_ASSIGN_OR_RETURN(FileDescriptor folder, OpenFolder(cut.chosen));
  std::string shown = cut.chosen;
  for (const std::string& name : cut.below) {
    const std::string parent = shown;
    absl::StrAppend(&shown, "/", name);
    if (mkdirat(folder.get(), name.c_str(), 0777) == 0) {
      CISTERN_RETURN_IF_ERROR(SyncToDisk(folder.get(), parent));
    } else if (errno != EEXIST) {
      return ErrnoStatus(errno, "create the folder", shown);
    }
    CISTERN_ASSIGN_OR_RETURN(folder, OpenFolderAt(folder.get(), name, shown));
  }
  return absl::OkStatus();
}

absl::Status LocalFileSystem::Publish(const FilePath& from, const FilePath& to) {
  CISTERN_ASSIGN_OR_RETURN(const Renaming names, LocateBoth(from, to));
  const int folder = names.from.folder.get();
  int error = 0;
  if (renameat2(folder, names.from.leaf.c_str(), folder, names.to_leaf.c_str(), RENAME_NOREPLACE) !=
      0) {
    error = errno;
  }
  if (error == EINVAL || error == ENOSYS) {
    error = LinkThenUnlink(folder, names.from.leaf, names.to_leaf);
  }
  if (error == 0) return absl::OkStatus();
  return ErrnoStatus(error, absl::StrCat("rename ", names.from.path, " to"), names.to_path);
}

absl::Status LocalFileSystem::Replace(const FilePath& from, const FilePath& to) {
  CISTERN_ASSIGN_OR_RETURN(const Renaming names, LocateBoth(from, to));
  const int folder = names.from.folder.get();
  if (renameat(folder, names.from.leaf.c_str(), folder, names.to_leaf.c_str()) == 0) {
    return absl::OkStatus();
  }
  return ErrnoStatus(errno, absl::StrCat("rename ", names.from.path, " to"), names.to_path);
}

absl::Status LocalFileSystem::Exchange(const FilePath& a, const FilePath& b) {
  CISTERN_ASSIGN_OR_RETURN(const Renaming names, LocateBoth(a, b));
  const int folder = names.from.folder.get();
  const char* const one = names.from.leaf.c_str();
  if (renameat2(folder, one, folder, names.to_leaf.c_str(), RENAME_EXCHANGE) == 0)
    return absl::OkStatus();
  const int error = errno;
  const bool is_supported = error != EINVAL && error != ENOSYS;
  if (!is_supported) return absl::UnimplementedError(names.to_path + ": names cannot be exchanged");
  return ErrnoStatus(error, absl::StrCat("exchange ", names.from.path, " and"), names.to_path);
}

absl::Status LocalFileSystem::Remove(const FilePath& path) {
  CISTERN_ASSIGN_OR_RETURN(const Place place, Locate(path));
  // The blocks are freed when the last descriptor closes, which takes long for a large file.
  FileDescriptor last(
      openat(place.folder.get(), place.leaf.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (unlinkat(place.folder.get(), place.leaf.c_str(), 0) == 0) {
    CloseLater(std::move(last));
    return absl::OkStatus();
  }
  if (errno == EISDIR && unlinkat(place.folder.get(), place.leaf.c_str(), AT_REMOVEDIR) == 0) {
    return absl::OkStatus();
  }
  return ErrnoStatus(errno, "remove", place.path);
}

void LocalFileSystem::CloseLater(FileDescriptor last) {
  constexpr off_t kLargeBytes = off_t{16} << 20;
  struct stat status;
  if (fstat(last.get(), &status) != 0 || status.st_size < kLargeBytes) return;
  absl::MutexLock lock(&mutex_);
  if (closer_ == nullptr) closer_ = std::make_unique<ThreadPool>(1);
  closer_->Run([fd = std::make_shared<FileDescriptor>(std::move(last))] { *fd = {}; });
}

absl::Status LocalFileSystem::SyncFolder(const FilePath& path) {
  CISTERN_ASSIGN_OR_RETURN(const FileDescriptor fd, OpenWhole(path));
  return SyncToDisk(fd.get(), path.text());
}

absl::StatusOr<std::vector<std::string>> LocalFileSystem::List(const FilePath& path) {
  const std::string& folder = path.text();
  CISTERN_ASSIGN_OR_RETURN(const FileDescriptor fd, OpenWhole(path));
  // Its own descriptor, which closedir closes.
  const int listed = fcntl(fd.get(), F_DUPFD_CLOEXEC, 0);
  DIR* const listing = listed < 0 ? nullptr : fdopendir(listed);
  if (listing == nullptr) {
    const absl::Status failed = ErrnoStatus(errno, "open the folder", folder);
    if (listed >= 0) close(listed);
    return failed;
  }
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = readdir(listing)) {
    const absl::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  const int error = errno;
  closedir(listing);
  if (error != 0) return ErrnoStatus(error, "list the folder", folder);
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<bool> LocalFileSystem::Exists(const FilePath& path) {
  struct stat status;
  int found;
  if (path.chosen_bytes() == 0) {
    found = lstat(path.text().c_str(), &status);
  } else {
    const absl::StatusOr<Place> place = Locate(path);
    if (absl::IsNotFound(place.status())) return false;
    CISTERN_RETURN_IF_ERROR(place.status());
    found = fstatat(place->folder.get(), place->leaf.c_str(), &status, AT_SYMLINK_NOFOLLOW);
  }
  if (found == 0) return true;
  if (errno == ENOENT) return false;
  return ErrnoStatus(errno, "stat", path.text());
}

absl::Status LocalFileSystem::MakeLink(const std::string& target, const FilePath& path) {
  CISTERN_ASSIGN_OR_RETURN(const Place place, Locate(path));
  const char* const leaf = place.leaf.c_str();
  if (symlinkat(target.c_str(), place.folder.get(), leaf) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, "create the link", place.path);
}

absl::StatusOr<std::string> LocalFileSystem::ReadLink(const FilePath& path) {
  CISTERN_ASSIGN_OR_RETURN(const Place place, Locate(path));
  char target[PATH_MAX];
  const ssize_t size = readlinkat(place.folder.get(), place.leaf.c_str(), target, sizeof(target));
  if (size >= 0) return std::string(target, static_cast<size_t>(size));
  if (errno == EINVAL) return absl::InvalidArgumentError(place.path + " is not a symbolic link");
  return ErrnoStatus(errno, "read the link", place.path);
}

absl::StatusOr<std::unique_ptr<FileLock>> LocalFileSystem::Lock(const FilePath& path) {
  CISTERN_ASSIGN_OR_RETURN(const Place place, Locate(path));
  FileDescriptor fd(openat(place.folder.get(), place.leaf.c_str(),
                           O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
  if (!fd.is_open()) return ErrnoStatus(errno, "open the lock", place.path);
  int locked;
  do {
    locked = flock(fd.get(), LOCK_EX | LOCK_NB);
  } while (locked != 0 && errno == EINTR);  // NFS asks its server
  if (locked == 0) return std::make_unique<LocalFileLock>(std::move(fd));
  if (errno != EWOULDBLOCK) return LockError(errno, place.path);
  return absl::FailedPreconditionError(absl::StrCat(
      place.path, " is held by another process that uses this folder; stop that process first"));
}

FilePath FilePath::With(absl::string_view ending) const {
  FilePath path = *this;
  absl::StrAppend(&path.text_, ending);
  return path;
}

FilePath PathBelow(const FilePath& folder, absl::string_view name) {
  FilePath path(absl::StrCat(absl::StripSuffix(folder.text_, "/"), "/", name));
  path.chosen_bytes_ =
      folder.chosen_bytes_ > 0 ? folder.chosen_bytes_ : path.text_.size() - name.size();
  return path;
}

std::string ParentFolder(absl::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  if (slash == absl::string_view::npos) return ".";
  return std::string(slash == 0 ? "/" : path.substr(0, slash));
}

absl::Status RemoveTree(FileSystem& files, const FilePath& path) {
  const absl::Status removed = files.Remove(path);
  if (removed.ok() || absl::IsNotFound(removed)) return absl::OkStatus();
  // Remove fails only for a non-empty folder; a link would have been removed.
  const absl::StatusOr<std::vector<std::string>> names = files.List(path);
  if (!names.ok()) return removed;
  for (const std::string& name : *names) {
    CISTERN_RETURN_IF_ERROR(RemoveTree(files, PathBelow(path, name)));
  }
  return files.Remove(path);
}

absl::StatusOr<std::string> ReadWhole(FileSystem& files, const FilePath& path, uint64_t limit) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, files.Open(path));
  if (file->bytes() > limit) {
    return absl::ResourceExhaustedError(absl::StrCat(path.text(), " has ", file->bytes(),
                                                     " bytes; the limit for such a file is ", limit,
                                                     " bytes"));
  }
  std::string bytes(file->bytes(), '\0');
  CISTERN_RETURN_IF_ERROR(file->Read(0, bytes.size(), bytes.data()));
  return bytes;
}

}  // namespace cistern
