// Atomic writes of model files and folders: they get their names once complete and on disk.
#pragma once

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "common/io/file_system.h"

struct XXH3_state_s;

namespace cistern {

// An append-only file. Append writes to "<path>.tmp" through a buffer; Close syncs it to disk and
// renames it to <path>, replacing an older file. Destruction before Close removes the temporary
// file. Errors name the path; after the first error the file is unusable.
//
// Threads: one at a time.
class NewFile {
 public:
  // Creates the parent folder of `path`.
  static absl::StatusOr<std::unique_ptr<NewFile>> Create(FileSystem& files,
                                                         const std::string& path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  absl::Status Append(absl::string_view bytes);
  absl::Status Close();
  // The file will be read soon (WritableFile::WillBeRead). Call it before the first Append.
  void WillBeRead() { out_->WillBeRead(); }

  uint64_t bytes() const { return bytes_; }
  // XXH3-64 of all bytes; valid after Close.
  uint64_t xxh3() const;

 private:
  NewFile(FileSystem& files, std::string path, std::unique_ptr<WritableFile> out);
  absl::Status Flush();

  FileSystem& files_;
  const std::string path_;
  std::unique_ptr<WritableFile> out_;  // null after Close
  std::string buffer_;
  uint64_t bytes_ = 0;
  XXH3_state_s* const hash_state_;
};

// Renames the folder `fresh` to `folder`. An existing `folder` is first moved to "<folder>.old" and
// removed afterwards, so that one complete folder exists at all times.
absl::Status ReplaceFolder(FileSystem& files, const std::string& fresh, const std::string& folder);

}  // namespace cistern
