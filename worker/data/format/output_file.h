// A file that appears under its name only when it is complete.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "common/io/file_system.h"

namespace cistern {

// Bytes go to "<path>.tmp" through a buffer; Close has them on disk and then gives the file its
// name. An output that is dropped before Close leaves nothing behind. A full disk is
// kResourceExhausted. The first error makes the file dead: every further call returns it again.
//
// Threads: one at a time.
class OutputFile {
 public:
  // kInvalidArgument, before any work: `path` is a folder or a device, lies in no folder, or is
  // one of the files `read`, which it would replace.
  static absl::Status Check(const std::string& path, const std::vector<std::string>& read);
  // Replaces what stands at `path` at Close, in one step. files: outlives this.
  static absl::StatusOr<std::unique_ptr<OutputFile>> Create(FileSystem& files,
                                                            const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  absl::Status Append(absl::string_view bytes);
  // Overwrites bytes that were appended before, such as a header with a count.
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
  std::unique_ptr<WritableFile> out_;  // null once it has its name
  std::string buffer_;
  uint64_t written_ = 0;
  absl::Status status_;  // the first error
};

}  // namespace cistern
