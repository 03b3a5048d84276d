// Reads the lines of a text file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "worker/data/format/byte_stream.h"

namespace cistern::data {

// Threads: one at a time.
class LineReader {
 public:
  // Longer lines are refused, so that a file without line ends cannot exhaust memory.
  static constexpr size_t kMaxLineBytes = size_t{16} << 20;

  // kDataLoss: by its first bytes, a compressed or binary file; the message has the fix.
  static absl::StatusOr<std::unique_ptr<LineReader>> Open(const std::string& path);

  // Reads the next line into `line`, without its line end (LF or CR LF) and, in line 1, without a
  // byte order mark; false at the end. `line` is valid until the next call. kDataLoss: a line that
  // is too long or contains a zero byte.
  absl::StatusOr<bool> Next(absl::string_view* line);
  // Extends `line` by the next line, including the line end between them; false at the end.
  absl::StatusOr<bool> Extend(absl::string_view* line);

  const std::string& path() const { return stream_->path(); }
  uint64_t line() const { return first_line_; }  // first line of the current text, from 1
  uint64_t bytes_read() const { return stream_->file_bytes_read(); }
  // "file: line 12: what".
  absl::Status DataLoss(absl::string_view what) const;
  // The same status with this place before its message.
  absl::Status WithPlace(const absl::Status& status) const;

 private:
  explicit LineReader(std::unique_ptr<ByteStream> stream) : stream_(std::move(stream)) {}
  // Extends the current text by the next physical line; false at the end of the file.
  absl::StatusOr<bool> TakeLine();
  absl::string_view Current() const;

  std::unique_ptr<ByteStream> stream_;
  size_t taken_ = 0;  // bytes of the current line, line end included
  uint64_t first_line_ = 0, last_line_ = 0;
};

}  // namespace cistern::data
