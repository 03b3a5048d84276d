// Files and folders through POSIX descriptors. Every return code is checked.
//
// Errors name the path and say what to do. kResourceExhausted: no space, quota or size limit;
// kNotFound: the path does not exist; kAlreadyExists: the name is taken; kInvalidArgument: the path
// cannot be used; kPermissionDenied: this user has no access; kInternal: everything else.
//
// Calls relative to an open folder do not follow a symbolic link at the last component, so a
// validated name (common/base/names.h) cannot lead out of its folder.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "common/base/status.h"

namespace cistern {

// Owns an open file or folder.
//
// Threads: one at a time.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();  // closes and ignores errors; writers therefore call Close

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  // Closes the descriptor, even if it returns an error. `path`: for the error message.
  absl::Status Close(const std::string& path);

 private:
  int fd_ = -1;
};

// The status for errno value `error`, after `action` ("write", "open" ...) on `path` failed.
absl::Status ErrnoStatus(int error, absl::string_view action, const std::string& path);

// Creates the folder and its missing parents; each new folder is durable on return.
absl::Status MakeFolders(const std::string& path);

absl::StatusOr<FileDescriptor> OpenFolder(const std::string& path);
// Opens folder `name` in the open folder `parent`. `path`: its full path, for error messages.
absl::StatusOr<FileDescriptor> OpenFolderAt(int parent, const std::string& name,
                                            const std::string& path);

// A regular file opened for reading, and its size. Opening anything else returns kInvalidArgument,
// which names the kind of file. Opening a FIFO without a writer does not block.
struct OpenedFile {
  FileDescriptor fd;
  uint64_t bytes = 0;
};
// Opens a path given by the user: links are followed.
absl::StatusOr<OpenedFile> OpenFile(const std::string& path);
absl::StatusOr<OpenedFile> OpenFileAt(int folder, const std::string& name, const std::string& path);

// Creates a new file for writing; kAlreadyExists if the name is taken. mode: as in open(2).
absl::StatusOr<FileDescriptor> CreateFileAt(int folder, const std::string& name,
                                            const std::string& path, unsigned mode);

// Reads a whole file, opened with OpenFile; kResourceExhausted above `limit` bytes.
absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t limit);

// The status for errno value `error` of a lock that could not be tried: the file system does not
// lock files, and what to do about it.
absl::Status LockError(int error, const std::string& path);

// The status for errno value `error` of a write at byte `offset`. For EFBIG the message states the
// file size limit.
absl::Status WriteError(int error, uint64_t offset, const std::string& path);

// Writes all of `bytes` at the file's position, or at `offset` without moving the position.
absl::Status WriteFully(int fd, absl::string_view bytes, const std::string& path);
absl::Status WriteFullyAt(int fd, uint64_t offset, absl::string_view bytes,
                          const std::string& path);

// Reads `size` bytes, or fewer at the end of the file; returns the number of bytes read.
absl::StatusOr<size_t> ReadFully(int fd, char* out, size_t size, const std::string& path);

// Makes the bytes of a file, or the names in a folder, durable: they survive a loss of power.
absl::Status SyncToDisk(int fd, const std::string& path);

}  // namespace cistern
