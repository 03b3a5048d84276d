// Streaming gzip compression and decompression (RFC 1952), through zlib. Each stream uses a few
// hundred KB of memory, whatever its length: data is processed in blocks.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/status.h"

struct z_stream_s;

namespace cistern {

// zlib's number for the largest window, with gzip's header and trailer.
inline constexpr int kGzipWindow = 15 + 16;

// Threads: one at a time.
class GzipWriter {
 public:
  GzipWriter();
  ~GzipWriter();
  GzipWriter(const GzipWriter&) = delete;
  GzipWriter& operator=(const GzipWriter&) = delete;

  // Compresses `bytes` and appends the output that is ready to *out. The stream is reproducible: it
  // holds no time and no name, so equal bytes give equal streams with the same version of zlib.
  void Append(absl::string_view bytes, std::string* out);
  // Ends the stream and appends the rest of the output. No Append may follow.
  void Finish(std::string* out);

 private:
  void Deflate(absl::string_view bytes, int flush, std::string* out);

  const std::unique_ptr<z_stream_s> stream_;
};

// Threads: one at a time.
class GzipReader {
 public:
  // block: called with blocks of up to 256 KB of decompressed bytes, in order; Append stops at its
  // first error and returns it.
  explicit GzipReader(std::function<absl::Status(absl::string_view block)> block);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  // Decompresses the next bytes of one stream or of several concatenated streams. kDataLoss if they
  // are not gzip data or a checksum does not match.
  absl::Status Append(absl::string_view bytes);
  // kDataLoss if the last stream is truncated.
  absl::Status Finish() const;

 private:
  const std::function<absl::Status(absl::string_view)> block_;
  const std::unique_ptr<z_stream_s> stream_;
  std::string out_;
  bool in_stream_ = false;  // a stream has begun and has not ended
};

}  // namespace cistern
