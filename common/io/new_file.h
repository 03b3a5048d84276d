// Atomic writes of files and folders: they get their names once complete and on disk.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "common/base/stream_hash.h"
#include "common/io/file_system.h"

namespace cistern {

// A file that is written from front to back. Append writes to "<path>.tmp" through a buffer; Close
// syncs it to disk and renames it to <path>, replacing an older file. Destruction before Close
// removes the temporary file. Errors name the path; kResourceExhausted: the disk is full. After the
// first error, every further call returns that error.
//
// Threads: one at a time.
class NewFile {
 public:
  // Checks a path that a user named, before any work. kInvalidArgument: it is a folder or a device,
  // its parent folder does not exist, or it is one of the input files `read`, which it would
  // replace.
  static absl::Status Check(const std::string& path, const std::vector<std::string>& read);
  // The part of Check that Create repeats. kInvalidArgument: it is a device or a pipe (/dev/null,
  // /dev/stdout), which a user who may do everything would replace by a file.
  static absl::Status CheckNoDevice(const std::string& path);
  // Creates the parent folder of `path`. files: outlives this.
  static absl::StatusOr<std::unique_ptr<NewFile>> Create(FileSystem& files,
                                                         const std::string& path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  absl::Status Append(absl::string_view bytes);
  // Overwrites bytes appended before, such as a header with a count. The file then has no xxh3().
  absl::Status WriteAt(uint64_t offset, absl::string_view bytes);
  // If only the sync of the folder fails, the complete file has its name, but may lose it when the
  // power fails.
  absl::Status Close();
  // The file will be read soon (WritableFile::WillBeRead). Call it before the first Append.
  void WillBeRead() { out_->WillBeRead(); }

  const std::string& path() const { return path_; }
  uint64_t bytes() const { return bytes_; }
  // XXH3-64 of all bytes; valid after Close.
  uint64_t xxh3() const;

 private:
  NewFile(FileSystem& files, std::string path, std::unique_ptr<WritableFile> out);
  absl::Status Flush();
  absl::Status Finish();
  std::string temporary_path() const { return path_ + ".tmp"; }

  FileSystem& files_;
  const std::string path_;
  std::unique_ptr<WritableFile> out_;  // null after Close
  std::string buffer_;
  uint64_t bytes_ = 0;   // appended
  absl::Status status_;  // the first error
  bool overwritten_ = false;
  StreamHash hash_;
};

// Writes a file that is `bytes` (NewFile). On an error, an older file stays.
absl::Status WriteWhole(FileSystem& files, const std::string& path, absl::string_view bytes);

// Removes a file; OK if there is none: what a killed process may have left.
absl::Status RemoveIfThere(FileSystem& files, const std::string& path);

// Renames the folder `fresh` to `folder`. An existing `folder` is exchanged for it and then
// removed, so `folder` is complete at all times. On a file system that cannot exchange names, it is
// moved to "<folder>.old" first; a kill at that moment leaves only this and `fresh`.
absl::Status ReplaceFolder(FileSystem& files, const std::string& fresh, const std::string& folder);

}  // namespace cistern
