// An output file that appears under its name only when it is complete.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "common/io/file_system.h"

namespace cistern {

// Buffers bytes and writes them to "<path>.tmp"; Close syncs the file and renames it. Without
// Close, the destructor removes the temporary file. A full disk is kResourceExhausted. After the
// first error, every further call returns that error.
//
// Threads: one at a time.
class OutputFile {
 public:
  // Checks `path` before any work. kInvalidArgument: it is a folder or a device, its parent folder
  // does not exist, or it is one of the input files `read`, which it would replace.
  static absl::Status Check(const std::string& path, const std::vector<std::string>& read);
  // Close replaces an existing file at `path` atomically. files: outlives this.
  static absl::StatusOr<std::unique_ptr<OutputFile>> Create(FileSystem& files,
                                                            const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  absl::Status Append(absl::string_view bytes);
  // Overwrites bytes appended before, such as a header with a count.
  absl::Status WriteAt(uint64_t offset, absl::string_view bytes);
  absl::Status Close();

  const std::string& path() const { return path_; }
  uint64_t size() const { return written_ + buffer_.size(); }

 private:
  OutputFile(FileSystem& files, std::string path, std::unique_ptr<WritableFile> out)
      : files_(files), path_(std::move(path)), out_(std::move(out)) {}
  absl::Status Flush();
  absl::Status Finish();
  std::string temporary_path() const { return path_ + ".tmp"; }

  FileSystem& files_;
  const std::string path_;
  std::unique_ptr<WritableFile> out_;  // null after the rename
  std::string buffer_;
  uint64_t written_ = 0;
  absl::Status status_;  // the first error
};

}  // namespace cistern
