// Reads a file or standard input sequentially through one bounded buffer. A file that is compressed
// with gzip or zstd is read unpacked.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/byte_source.h"

namespace cistern::data {

// Bytes [offset(), offset() + available()) of the source are contiguous at data(). Fill reads more
// bytes, Consume drops bytes at the front. The buffer grows only as far as a Fill requests and the
// source provides, so a caller that bounds its records bounds the memory.
//
// Threads: one at a time.
class ByteStream {
 public:
  // Small enough that what was read is still in the core's cache when it is parsed.
  static constexpr size_t kBufferBytes = size_t{256} << 10;

  // path: as OpenSource (worker/data/storage/storage.h), or "-" for standard input of any kind.
  // kNotFound, kPermissionDenied and similar errors name the path; kInvalidArgument: not a regular
  // file. kDataLoss, also from Fill: a compressed file that is corrupt or cut short.
  static absl::StatusOr<std::unique_ptr<ByteStream>> Open(const std::string& path);
  static std::unique_ptr<ByteStream> Over(std::unique_ptr<ByteSource> source) {
    return std::unique_ptr<ByteStream>(new ByteStream(std::move(source)));
  }
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  // Makes at least `n` bytes available, or all remaining bytes if the source has fewer.
  absl::Status Fill(size_t n);
  void Consume(size_t n) {
    begin_ += n;
    offset_ += n;
  }
  // Drops `n` bytes, or fewer at the end of the source; returns how many.
  absl::StatusOr<uint64_t> Skip(uint64_t n);
  // Makes byte `offset` of the contents the next one, and drops the available bytes; false, with no
  // change, if the source only reads forward.
  absl::StatusOr<bool> Seek(uint64_t offset);

  const char* data() const { return buffer_.data() + begin_; }
  size_t available() const { return end_ - begin_; }
  uint64_t offset() const { return offset_; }
  // Whether no bytes follow the available ones. Known only after a Fill that reached the end.
  bool at_end() const { return at_end_; }
  const std::string& path() const { return source_->path(); }
  // Bytes taken from the file; for a compressed one, compressed bytes.
  uint64_t file_bytes_read() const { return source_->file_bytes_read(); }

 private:
  explicit ByteStream(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}

  // Grows the buffer, to at most `most` bytes.
  void Grow(size_t most);

  const std::unique_ptr<ByteSource> source_;
  std::vector<char> buffer_;    // small at first: many files are small or only probed
  size_t begin_ = 0, end_ = 0;  // of the available bytes in buffer_
  bool filled_ = false;         // the last Fill filled the whole buffer
  uint64_t offset_ = 0;
  bool at_end_ = false;
};

}  // namespace cistern::data
