// A file or standard input, read forward through one bounded buffer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file.h"

namespace cistern {

// Bytes [offset(), offset() + available()) of the source lie contiguously at data(). Fill asks for
// more of them, Consume drops those at the front. The buffer grows only as far as a caller's Fill
// asks and the source gives, so a caller that bounds its records bounds the memory.
//
// Threads: one at a time.
class ByteStream {
 public:
  static constexpr size_t kBufferBytes = size_t{1} << 20;

  // path: a regular file, or "-" for standard input, which may be anything. kNotFound,
  // kPermissionDenied and the like name it; kInvalidArgument: another kind of file.
  static absl::StatusOr<std::unique_ptr<ByteStream>> Open(const std::string& path);
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  // Makes at least `n` bytes available, or all that are left where the source has fewer.
  absl::Status Fill(size_t n);
  void Consume(size_t n) {
    begin_ += n;
    offset_ += n;
  }

  const char* data() const { return buffer_.data() + begin_; }
  size_t available() const { return end_ - begin_; }
  uint64_t offset() const { return offset_; }
  // Nothing lies behind the available bytes. Known only after a Fill that found the end.
  bool at_end() const { return at_end_; }
  const std::string& path() const { return path_; }

 private:
  ByteStream(std::string path, FileDescriptor file)
      : path_(std::move(path)), file_(std::move(file)) {}

  // To `most` bytes at most.
  void Grow(size_t most);

  std::string path_;
  FileDescriptor file_;         // not open: standard input
  std::vector<char> buffer_;    // small at first: many files are small, or opened for a look
  size_t begin_ = 0, end_ = 0;  // of the available bytes inside buffer_
  bool filled_ = false;         // the last reading found as much as the buffer took
  uint64_t offset_ = 0;
  bool at_end_ = false;
};

}  // namespace cistern
