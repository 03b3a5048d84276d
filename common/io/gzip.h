// Streams in gzip's format (RFC 1952), through zlib. Memory is a few hundred KB whatever the length
// of a stream: what goes in comes out in blocks, so a reader decides how much it takes.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/status.h"

struct z_stream_s;

namespace cistern {

// Threads: one at a time.
class GzipWriter {
 public:
  GzipWriter();
  ~GzipWriter();
  GzipWriter(const GzipWriter&) = delete;
  GzipWriter& operator=(const GzipWriter&) = delete;

  // Compresses `bytes` and appends what is ready to *out. The same bytes make the same stream,
  // whenever and wherever (no time, no name), for one version of zlib.
  void Append(absl::string_view bytes, std::string* out);
  // Ends the stream and appends the rest. Nothing may be appended after it.
  void Finish(std::string* out);

 private:
  void Deflate(absl::string_view bytes, int flush, std::string* out);

  const std::unique_ptr<z_stream_s> stream_;
};

// Threads: one at a time.
class GzipReader {
 public:
  // block: called with blocks of up to 256 KB of the original bytes, in order; its error ends the
  // reading.
  explicit GzipReader(std::function<absl::Status(absl::string_view block)> block);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  // Inflates the next bytes of a stream, or of several one after the other. kDataLoss: they are not
  // gzip's, or a checksum fails.
  absl::Status Append(absl::string_view bytes);
  // kDataLoss if a stream has not ended.
  absl::Status Finish() const;

 private:
  const std::function<absl::Status(absl::string_view)> block_;
  const std::unique_ptr<z_stream_s> stream_;
  std::string out_;
  bool in_stream_ = false;  // a stream has begun and not ended
};

}  // namespace cistern
