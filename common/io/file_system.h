// The checked file system: every byte that a server or a worker keeps goes through this interface,
// so tests can replace the disk (test/support/: one implementation fails the N-th call, another
// records calls and simulates a loss of power).
//
// Errors name the path, the failed action and what to do; their codes are those of
// common/io/file.h.
//
// A symbolic link at the last name of a path is never followed, except by the calls that take a
// folder (MakeFolders, SyncFolder, List). If more than the last name is untrusted, PathBelow says
// where the untrusted names begin: no call follows a link among them, not even one that appears
// while the call runs, so none leads out of its folder. FilesBelow (common/io/files_below.h) makes
// all paths such ones.
//
// What survives a loss of power: the bytes of a file once its Sync has returned, and a name
// (created, published, replaced, removed) once SyncFolder of its folder has returned. Nothing else.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "common/io/file.h"
#include "common/io/read_queue.h"

namespace cistern {

// The path of a file. A plain text is a path that the user chose, of which the last name alone is
// untrusted; PathBelow makes the others.
class FilePath {
 public:
  // Implicit, because nearly every path is plain.
  FilePath(std::string text) : text_(std::move(text)) {}  // NOLINT
  FilePath(const char* text) : text_(text) {}             // NOLINT

  const std::string& text() const { return text_; }
  // How much of the text, with its slash, is the folder that the user chose; 0: all but the last
  // name.
  size_t chosen_bytes() const { return chosen_bytes_; }
  // The path with `ending` after its last name.
  FilePath With(absl::string_view ending) const;

 private:
  friend FilePath PathBelow(const FilePath& folder, absl::string_view name);

  std::string text_;
  size_t chosen_bytes_ = 0;
};

// The path of `name`, "a" or "a/b", in `folder`: no name after the folder that the user chose may
// be a symbolic link.
FilePath PathBelow(const FilePath& folder, absl::string_view name);

// A new file that grows at its end. Appended bytes may be overwritten, e.g. by a header whose count
// is known last.
//
// Errors are sticky: after the first one, every further call returns the same error. (A failed
// fsync drops the dirty pages and marks them clean, so a second fsync would succeed: Rebello et
// al., ATC'20. The remedy is to write a new file.)
//
// Bytes may be buffered in the process until Sync or Close; other readers do not see them before.
//
// Threads: one at a time. The destructor closes the file; bytes that were not synced may be lost.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual absl::Status Append(absl::string_view bytes) = 0;
  // Overwrites bytes that were appended before, starting at `offset`.
  virtual absl::Status WriteAt(uint64_t offset, absl::string_view bytes) = 0;
  virtual absl::Status Sync() = 0;
  virtual absl::Status Close() = 0;
  // A hint that the file will be read soon: its bytes should stay in the page cache, which large
  // files otherwise bypass.
  virtual void WillBeRead() {}
};

// Threads: any thread.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual uint64_t bytes() const = 0;  // the size when the file was opened
  // Reads exactly `size` bytes at `offset`; kDataLoss if the file ends earlier. Large reads are
  // fastest if `offset` and `out` are aligned (common/io/piece_reader.h).
  virtual absl::Status Read(uint64_t offset, size_t size, char* out) const = 0;
  // Reads many pieces, in any order; the real file system keeps them in flight together and
  // bypasses the page cache. Offsets, sizes and addresses are multiples of
  // AlignedBuffer::kAlignment; the last piece may end up to a page after the end of the file, where
  // its bytes stay as they are. Errors as those of Read.
  virtual absl::Status ReadMany(absl::Span<const ReadRequest> requests) const;
};

// A lock on a file, held until this object is destroyed or the process ends.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

// Threads: any thread.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Creates a new file; kAlreadyExists if the name is taken.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> Create(const FilePath& path) = 0;
  // The same, for a file that only its owner can read.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> CreatePrivate(const FilePath& path) {
    return Create(path);
  }
  // Opens a regular file; kNotFound if there is none, kInvalidArgument for any other kind of file.
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const FilePath& path) = 0;
  // Creates the folder and its parents; each new folder is durable on return. OK if it exists.
  virtual absl::Status MakeFolders(const FilePath& path) = 0;
  // Renames `from` to `to` (in the same folder) atomically; kAlreadyExists if `to` exists, and
  // `from` keeps its name.
  virtual absl::Status Publish(const FilePath& from, const FilePath& to) = 0;
  // The same, but atomically replaces an existing `to`. Also renames folders.
  virtual absl::Status Replace(const FilePath& from, const FilePath& to) = 0;
  // Swaps two names in one folder atomically, also those of folders. kNotFound if one of them does
  // not exist; kUnimplemented if the file system cannot.
  virtual absl::Status Exchange(const FilePath& a, const FilePath& b) = 0;
  // Removes a file or an empty folder; kNotFound if there is none.
  virtual absl::Status Remove(const FilePath& path) = 0;
  virtual absl::Status SyncFolder(const FilePath& path) = 0;
  // The names in the folder, sorted; kNotFound if there is no such folder.
  virtual absl::StatusOr<std::vector<std::string>> List(const FilePath& folder) = 0;
  virtual absl::StatusOr<bool> Exists(const FilePath& path) = 0;
  // Creates a symbolic link to `target`, which need not exist; kAlreadyExists if the name is taken.
  // Replace and Remove treat a link as a file.
  virtual absl::Status MakeLink(const std::string& target, const FilePath& path) = 0;
  // The target of a link; kNotFound if the name does not exist, kInvalidArgument if it is no link.
  virtual absl::StatusOr<std::string> ReadLink(const FilePath& path) = 0;
  // Locks the file `path` (created if needed) for this process; kFailedPrecondition if another
  // process holds the lock.
  virtual absl::StatusOr<std::unique_ptr<FileLock>> Lock(const FilePath& path) = 0;
};

// The file system of this machine, through POSIX calls (common/io/file.h).
class LocalFileSystem : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const FilePath& path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> CreatePrivate(const FilePath& path) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const FilePath& path) override;
  absl::Status MakeFolders(const FilePath& path) override;
  absl::Status Publish(const FilePath& from, const FilePath& to) override;
  absl::Status Replace(const FilePath& from, const FilePath& to) override;
  absl::Status Exchange(const FilePath& a, const FilePath& b) override;
  absl::Status Remove(const FilePath& path) override;
  absl::Status SyncFolder(const FilePath& path) override;
  absl::StatusOr<std::vector<std::string>> List(const FilePath& folder) override;
  absl::StatusOr<bool> Exists(const FilePath& path) override;
  absl::Status MakeLink(const std::string& target, const FilePath& path) override;
  absl::StatusOr<std::string> ReadLink(const FilePath& path) override;
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const FilePath& path) override;

 private:
  // mode: the permissions of the new file, as in open(2).
  absl::StatusOr<std::unique_ptr<WritableFile>> CreateWithMode(const FilePath& path, unsigned mode);
  // Closes the last descriptor of an unlinked file; a large file is closed on a thread, because
  // freeing its blocks takes long.
  void CloseLater(FileDescriptor last);

  const std::shared_ptr<ReadQueue> reads_ = std::make_shared<ReadQueue>();  // of all files
  absl::Mutex mutex_;
  std::unique_ptr<ThreadPool> closer_ ABSL_GUARDED_BY(mutex_);  // from the first large file on
};

// The folder that holds `path`: "a/b" and "a/b/" give "a", "a" gives ".".
std::string ParentFolder(absl::string_view path);

// Removes a file, or a folder and everything in it; OK if there is none. Links are removed, not
// followed.
absl::Status RemoveTree(FileSystem& files, const FilePath& path);

// Reads a whole small file; kResourceExhausted above `limit` bytes.
absl::StatusOr<std::string> ReadWhole(FileSystem& files, const FilePath& path, uint64_t limit);

}  // namespace cistern
