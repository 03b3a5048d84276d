// The checked file system: every byte that a server or a worker keeps goes through this interface,
// so that a test can stand in for the disk (test/support/: one that fails the N-th call, one that
// records calls and loses power).
//
// Errors name the path, what was tried and what to do; their codes are those of common/io/file.h.
//
// A symbolic link at the last name of a path is never followed, except where the path is that of a
// folder (MakeFolders, SyncFolder, List). Where more than one name is the caller's own rather than
// the user's, PathBelow marks them: none of those is followed, so that none leads out of its
// folder.
//
// What survives a loss of power: the bytes of a file once its Sync returned, and a name (created,
// published, replaced, removed) once SyncFolder of its folder returned. Nothing else.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "common/io/file.h"

namespace cistern {

// A new file that grows at its end. What was appended may be overwritten, for a header with a count
// that is known last.
//
// The first error of any call makes the file dead: every further call returns that error again. (A
// failed fsync drops the bytes and marks them clean, so that a second one would succeed: Rebello et
// al., ATC'20. The cure is another file.)
//
// Bytes may wait in the process until Sync or Close: nobody else sees them before.
//
// Threads: one at a time. The destructor closes; what was not synced may be lost.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual absl::Status Append(absl::string_view bytes) = 0;
  // Overwrites bytes from `offset` on, all of which were appended before.
  virtual absl::Status WriteAt(uint64_t offset, absl::string_view bytes) = 0;
  virtual absl::Status Sync() = 0;
  virtual absl::Status Close() = 0;
  // A hint that somebody will read the file soon, so that its bytes should stay in memory, which
  // those of large files do not otherwise.
  virtual void WillBeRead() {}
};

// Threads: any thread.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual uint64_t bytes() const = 0;  // when it was opened
  // Reads exactly `size` bytes from `offset` on; kDataLoss if the file ends before. Large reads are
  // fastest where offset and `out` are aligned (common/io/piece_reader.h).
  virtual absl::Status Read(uint64_t offset, size_t size, char* out) const = 0;
};

// Held until it is destroyed or the process ends.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

// Threads: any thread.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Creates a file that is not there yet: kAlreadyExists otherwise.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) = 0;
  // The same for a file that only its owner may read.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> CreatePrivate(const std::string& path) {
    return Create(path);
  }
  // Opens a regular file: kNotFound, kInvalidArgument for anything else.
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) = 0;
  // Makes the folder and those above it; each new one is on disk on return. OK if it is there.
  virtual absl::Status MakeFolders(const std::string& path) = 0;
  // Gives the file `from` the name `to` (same folder) if nothing has that name, in one step;
  // kAlreadyExists otherwise, and then `from` stays.
  virtual absl::Status Publish(const std::string& from, const std::string& to) = 0;
  // The same for a name that may be taken: what had it is gone, in one step. Folders too.
  virtual absl::Status Replace(const std::string& from, const std::string& to) = 0;
  // kNotFound if it is not there. Folders must be empty.
  virtual absl::Status Remove(const std::string& path) = 0;
  virtual absl::Status SyncFolder(const std::string& path) = 0;
  // Names in the folder, sorted; kNotFound if there is no such folder.
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& folder) = 0;
  virtual absl::StatusOr<bool> Exists(const std::string& path) = 0;
  // Takes the lock file `path` (created as needed) for this process; kFailedPrecondition if another
  // holder has it.
  virtual absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) = 0;
};

// The machine's own, through POSIX calls (common/io/file.h), every return code checked.
class LocalFileSystem : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> CreatePrivate(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override;
  absl::Status MakeFolders(const std::string& path) override;
  absl::Status Publish(const std::string& from, const std::string& to) override;
  absl::Status Replace(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status SyncFolder(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override;
  absl::StatusOr<bool> Exists(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override;

 private:
  // mode: of the new file, as open(2) takes it.
  absl::StatusOr<std::unique_ptr<WritableFile>> CreateWithMode(const std::string& path,
                                                               unsigned mode);
  // Closes the last descriptor of a file that has no name any more, by a thread if that takes long.
  void CloseLater(FileDescriptor last);

  absl::Mutex mutex_;
  std::unique_ptr<ThreadPool> closer_ ABSL_GUARDED_BY(mutex_);  // once a large file was removed
};

// folder + "//" + name, where name is "a" or "a/b": a path whose names after the "//" are not
// links.
std::string PathBelow(absl::string_view folder, absl::string_view name);
// A path as errors show it: that "//" is one slash.
std::string ShownPath(absl::string_view path);

// The folder that holds `path`: "a/b" and "a/b/" give "a", "a" gives ".".
std::string ParentFolder(absl::string_view path);

// Removes a file, or a folder with everything in it; OK if it is not there. Links are removed, not
// followed.
absl::Status RemoveTree(FileSystem& files, const std::string& path);

// The whole of a small file; kResourceExhausted above `limit` bytes.
absl::StatusOr<std::string> ReadWhole(FileSystem& files, const std::string& path, uint64_t limit);

}  // namespace cistern
