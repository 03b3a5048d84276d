#include "common/io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cistern {
namespace {

constexpr size_t kShownPathBytes = 200;  // how much of an overlong path an error shows

std::string ParentOf(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  const size_t slash = path.rfind('/', end);
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool IsFolder(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

// Names the kind of a file that is not a regular one, e.g. "a folder".
std::string KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO (a named pipe)";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "a special file";
}

absl::Status NotRegular(mode_t mode, const std::string& path) {
  const std::string list = path + "/file_list.txt";
  if (S_ISDIR(mode) && access(list.c_str(), F_OK) == 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is a folder: name its list, ", list));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path, " is ", KindOf(mode),
                   ", not a regular file; name a file, or copy its contents to one first"));
}

// failed: why a path could not be opened although links are followed.
absl::Status ExplainLink(const absl::Status& failed, int error, int folder,
                         const std::string& name) {
  if (error == ELOOP) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot open ", name, ": its symbolic links lead in a circle"));
  }
  char target[PATH_MAX];
  const ssize_t size =
      error == ENOENT ? readlinkat(folder, name.c_str(), target, sizeof(target)) : -1;
  if (size < 0) return failed;
  return absl::NotFoundError(absl::StrCat("cannot open ", name, ": it is a symbolic link to ",
                                          absl::string_view(target, static_cast<size_t>(size)),
                                          ", which is not there"));
}

// O_NONBLOCK: opening a FIFO must not block.
absl::StatusOr<OpenedFile> OpenRegular(int folder, const std::string& name, int more_flags,
                                       const std::string& path) {
  OpenedFile file;
  file.fd = FileDescriptor(
      openat(folder, name.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | more_flags));
  const int error = errno;
  struct stat status;
  if (!file.fd.is_open()) {
    // ENXIO is the answer of a socket, and of a device without hardware.
    const bool follows = (more_flags & O_NOFOLLOW) == 0;
    const int stat_flags = follows ? 0 : AT_SYMLINK_NOFOLLOW;
    if (error == ENXIO && fstatat(folder, name.c_str(), &status, stat_flags) == 0) {
      return NotRegular(status.st_mode, path);
    }
    const absl::Status failed = ErrnoStatus(error, "open", path);
    return follows ? ExplainLink(failed, error, folder, name) : failed;
  }
  if (fstat(file.fd.get(), &status) != 0) return ErrnoStatus(errno, "stat", path);
  if (!S_ISREG(status.st_mode)) return NotRegular(status.st_mode, path);
  file.bytes = static_cast<uint64_t>(status.st_size);
  return file;
}

// Whether `path` begins with a scheme, as "s3://bucket" does: no folder is meant by that.
bool IsUri(const std::string& path) {
  const size_t end = path.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789");
  return end != std::string::npos && end > 0 && path.compare(end, 3, "://") == 0;
}

}  // namespace

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

absl::Status FileDescriptor::Close(const std::string& path) {
  const int fd = std::exchange(fd_, -1);
  // Linux closes the descriptor even where it reports EINTR.
  if (fd >= 0 && close(fd) != 0 && errno != EINTR) return ErrnoStatus(errno, "close", path);
  return absl::OkStatus();
}

absl::Status ErrnoStatus(int error, absl::string_view action, const std::string& path) {
  const std::string what =
      absl::StrCat("cannot ", action, " ", path, ": ", std::string(strerror(error)));
  switch (error) {
    case EFBIG:
      return absl::ResourceExhaustedError(
          absl::StrCat(what, "; raise the file size limit (ulimit -f) or choose another place"));
    case ENOSPC:
    case EDQUOT:
      return absl::ResourceExhaustedError(
          absl::StrCat(what, "; free space there or choose another place, then try again"));
    case ENOENT:
      return absl::NotFoundError(what);
    case EEXIST:
      return absl::AlreadyExistsError(what);
    case ENOTDIR:
    case EISDIR:
      return absl::InvalidArgumentError(what);
    case ENAMETOOLONG:
      return absl::InvalidArgumentError(
          absl::StrCat("cannot ", action, " ", path.substr(0, kShownPathBytes),
                       "...: ", std::string(strerror(error)), ": the path has ", path.size(),
                       " bytes; the limit is ", PATH_MAX - 1, " for a path and ", NAME_MAX,
                       " for each name in it; choose a shorter one"));
    case ELOOP:
      return absl::InvalidArgumentError(
          absl::StrCat(what, " (symbolic links are not followed here)"));
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(
          absl::StrCat(what, "; grant this user access or choose another place"));
    case EMFILE:
    case ENFILE:
      return absl::ResourceExhaustedError(
          absl::StrCat(what, "; raise the open file limit (ulimit -n)"));
    default:
      return absl::InternalError(what);
  }
}

absl::Status MakeFolders(const std::string& path) {
  if (IsUri(path)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        " is not on this machine: write to a folder here, and copy it (docs/formats.md, "
        "\"Where files are\", lists what takes such paths)"));
  }
  int made = mkdir(path.c_str(), 0777);
  if (made != 0 && errno == ENOENT && !path.empty()) {
    CISTERN_RETURN_IF_ERROR(MakeFolders(ParentOf(path)));
    made = mkdir(path.c_str(), 0777);  // only once: /proc returns ENOENT every time
  }
  if (made == 0) {
    const std::string parent = ParentOf(path);
    CISTERN_ASSIGN_OR_RETURN(const FileDescriptor fd, OpenFolder(parent));
    return SyncToDisk(fd.get(), parent);
  }
  if (errno == EEXIST && IsFolder(path)) return absl::OkStatus();
  return ErrnoStatus(errno == EEXIST ? ENOTDIR : errno, "create the folder", path);
}

absl::StatusOr<FileDescriptor> OpenFolder(const std::string& path) {
  FileDescriptor fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open()) return ErrnoStatus(errno, "open the folder", path);
  return fd;
}

absl::StatusOr<FileDescriptor> OpenFolderAt(int parent, const std::string& name,
                                            const std::string& path) {
  FileDescriptor fd(openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.is_open()) return ErrnoStatus(errno, "open the folder", path);
  return fd;
}

absl::StatusOr<OpenedFile> OpenFile(const std::string& path) {
  return OpenRegular(AT_FDCWD, path, 0, path);
}

absl::StatusOr<OpenedFile> OpenFileAt(int folder, const std::string& name,
                                      const std::string& path) {
  return OpenRegular(folder, name, O_NOFOLLOW, path);
}

absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t limit) {
  CISTERN_ASSIGN_OR_RETURN(const OpenedFile file, OpenFile(path));
  if (file.bytes > limit) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, " has ", file.bytes, " bytes; at most ", limit, " are read"));
  }
  std::string bytes(file.bytes, '\0');
  CISTERN_ASSIGN_OR_RETURN(const size_t got,
                           ReadFully(file.fd.get(), bytes.data(), bytes.size(), path));
  bytes.resize(got);
  return bytes;
}

absl::StatusOr<FileDescriptor> CreateFileAt(int folder, const std::string& name,
                                            const std::string& path, unsigned mode) {
  FileDescriptor fd(
      openat(folder, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!fd.is_open()) return ErrnoStatus(errno, "create", path);
  return fd;
}

absl::Status LockError(int error, const std::string& path) {
  const absl::Status status = ErrnoStatus(error, "lock", path);
  switch (error) {
    case ENOLCK:
    case EOPNOTSUPP:
    case ENOSYS:
    case EINVAL:
      break;
    default:
      return status;
  }
  return WithMessage(
      status,
      absl::StrCat(status.message(),
                   ": this file system does not lock files, or its lock service does not answer; "
                   "choose a folder on a local disk, or mount NFS as version 4, or as version 3 "
                   "with rpc.statd and lockd running (with local_lock=flock only if no other "
                   "machine uses the folder)"));
}

absl::Status WriteError(int error, uint64_t offset, const std::string& path) {
  if (error != EFBIG) return ErrnoStatus(error, "write", path);
  rlimit limit;
  const bool limited = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return ErrnoStatus(error,
                     absl::StrCat("write beyond byte ", offset,
                                  limited ? absl::StrCat(" (this process may write files of ",
                                                         limit.rlim_cur, " bytes)")
                                          : "",
                                  " of"),
                     path);
}

absl::Status WriteFully(int fd, absl::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) {
      const int error = errno;
      const off_t at = lseek(fd, 0, SEEK_CUR);
      return WriteError(error, at < 0 ? 0 : static_cast<uint64_t>(at), path);
    }
    if (written > 0) bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status WriteFullyAt(int fd, uint64_t offset, absl::string_view bytes,
                          const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno != EINTR) return WriteError(errno, offset, path);
    if (written <= 0) continue;
    bytes.remove_prefix(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> ReadFully(int fd, char* out, size_t size, const std::string& path) {
  size_t total = 0;
  while (total < size) {
    const ssize_t got = read(fd, out + total, size - total);
    if (got < 0 && errno != EINTR) return ErrnoStatus(errno, "read", path);
    if (got == 0) break;
    if (got > 0) total += static_cast<size_t>(got);
  }
  return total;
}

absl::Status SyncToDisk(int fd, const std::string& path) {
  // EINVAL: this file system cannot sync this kind of descriptor, so there is nothing to sync.
  if (fsync(fd) != 0 && errno != EINVAL) return ErrnoStatus(errno, "sync", path);
  return absl::OkStatus();
}

}  // namespace cistern
