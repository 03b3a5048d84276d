// A read-only memory mapping of a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "common/io/file.h"

namespace cistern {

// Identifies a file as it was at some moment: differs for any other file, and for the same file
// after a write.
struct FileIdentity {
  uint64_t device = 0, inode = 0, bytes = 0;
  int64_t modified_ns = 0, changed_ns = 0;  // mtime and ctime
  bool operator==(const FileIdentity&) const = default;
};

// The system reads the pages on first access. If the file shrinks while it is mapped, an access
// beyond its new end kills the process (SIGBUS), so readers call StillWhole now and then.
//
// Threads: any.
class MappedFile {
 public:
  // kNotFound and similar errors name the path; kInvalidArgument: not a regular file.
  // access: how the bytes will be read, a hint for the system.
  enum class Access { kForward, kRandom };
  static absl::StatusOr<std::unique_ptr<MappedFile>> Open(const std::string& path,
                                                          Access access = Access::kForward);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  absl::string_view bytes() const { return {begin_, size_}; }
  // Reads all pages into memory and maps them now, so that the first access to each does not wait.
  // Works in pieces of a few MiB, because page faults of other threads wait for each. go_on: called
  // after each piece; false ends it. Null: all pages.
  void Prefetch(const std::function<bool()>& go_on = nullptr) const;
  const std::string& path() const { return path_; }
  // kDataLoss if the file has shrunk since Open.
  absl::Status StillWhole() const;
  // As of now.
  absl::StatusOr<FileIdentity> Identity() const;

 private:
  // begin: a multiple of the page size.
  void PrefetchPiece(size_t begin, size_t bytes) const;

  MappedFile(std::string path, FileDescriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  const std::string path_;
  const FileDescriptor fd_;
  const char* begin_ = nullptr;
  size_t size_ = 0;
};

}  // namespace cistern
