// A file that appears under its name only when it is complete.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "common/status.h"

namespace cistern {

// Bytes go to "<path>.tmp" through a buffer; Close has them on disk and then gives the file its
// name. An output that is dropped before Close leaves nothing behind. A full disk is
// kResourceExhausted. The first error makes the file dead: every further call returns it again.
//
// (Not a WritableFile of common/file_system.h, which only grows: a Norm file's count of records, in
// its header, is known at the end.)
//
// Threads: one at a time.
class OutputFile {
 public:
  // Replaces what stands at `path` at Close, in one step.
  static absl::StatusOr<std::unique_ptr<OutputFile>> Create(const std::string& path);
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
  OutputFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  absl::Status Flush();
  absl::Status Finish();
  absl::Status Write(absl::string_view bytes, uint64_t offset);
  std::string temporary_path() const { return path_ + ".tmp"; }

  std::string path_;
  int fd_;
  std::string buffer_;
  uint64_t written_ = 0;
  absl::Status status_;  // the first error
};

}  // namespace cistern
