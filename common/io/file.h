// Files and folders through POSIX descriptors, every return code checked.
//
// Errors name the path and say what to do. kResourceExhausted: no space, quota or size limit;
// kNotFound: it is not there; kAlreadyExists: its name is taken; kInvalidArgument: the path cannot
// be used; kPermissionDenied: this user may not; kInternal: the rest.
//
// Nothing here follows a symbolic link at the last component of a name below an open folder, so a
// name that was checked (common/base/names.h) cannot lead out of its folder.
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
  ~FileDescriptor();  // closes; an error goes unseen, so writers call Close

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  // `path` is for the error. The descriptor is closed whatever comes back.
  absl::Status Close(const std::string& path);

 private:
  int fd_ = -1;
};

// The status of errno value `error` that `action` ("write", "open" ...) on `path` ended with.
absl::Status ErrnoStatus(int error, absl::string_view action, const std::string& path);

// Makes the folder and those above it that are missing; each new one is on disk on return.
absl::Status MakeFolders(const std::string& path);

absl::StatusOr<FileDescriptor> OpenFolder(const std::string& path);
// Opens folder `name` of the open folder `parent`. `path`: of the result, for errors.
absl::StatusOr<FileDescriptor> OpenFolderAt(int parent, const std::string& name,
                                            const std::string& path);

// Opens a regular file for reading and returns its size too; anything else is kInvalidArgument,
// with what it is. A FIFO that nobody writes to blocks nobody.
struct OpenedFile {
  FileDescriptor fd;
  uint64_t bytes = 0;
};
// A path of the user's: links are followed.
absl::StatusOr<OpenedFile> OpenFile(const std::string& path);
absl::StatusOr<OpenedFile> OpenFileAt(int folder, const std::string& name, const std::string& path);

// Creates a file that is not there yet, for writing. mode: as open(2) takes it.
absl::StatusOr<FileDescriptor> CreateFileAt(int folder, const std::string& name,
                                            const std::string& path, unsigned mode);

// The whole of a file that OpenFile opens; kResourceExhausted above `limit` bytes.
absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t limit);

// The status of errno value `error` of a write from byte `offset` on; of a file that may not grow,
// with the limit to raise.
absl::Status WriteError(int error, uint64_t offset, const std::string& path);

// Writes all of `bytes`: where the file stands, or from `offset` on, and then it stands as before.
absl::Status WriteFully(int fd, absl::string_view bytes, const std::string& path);
absl::Status WriteFullyAt(int fd, uint64_t offset, absl::string_view bytes,
                          const std::string& path);

// Reads up to `size` bytes, fewer only at the end of the file; returns how many.
absl::StatusOr<size_t> ReadFully(int fd, char* out, size_t size, const std::string& path);

// Returns when what was written (file) or named (folder) survives a loss of power.
absl::Status SyncToDisk(int fd, const std::string& path);

}  // namespace cistern
