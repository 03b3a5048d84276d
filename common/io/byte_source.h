// Bytes that are read forward: a file, standard input, or the contents of a compressed one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/status.h"

namespace cistern {

// Threads: one at a time.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Reads up to `size` bytes (at least 1) into `out` and returns how many; 0 at the end. Errors
  // name the path and the byte.
  virtual absl::StatusOr<size_t> Read(char* out, size_t size) = 0;
  // Makes byte `offset` of the contents the next one; false, with no change, if this source only
  // reads forward (compressed, standard input).
  virtual absl::StatusOr<bool> Seek(uint64_t) { return false; }
  // Bytes taken from the file so far; for a compressed one, compressed bytes.
  virtual uint64_t file_bytes_read() const = 0;
  virtual const std::string& path() const = 0;
};

// path: a regular file, or "-" for standard input of any kind. Errors: as OpenFile
// (common/io/file.h).
absl::StatusOr<std::unique_ptr<ByteSource>> OpenFileSource(const std::string& path);

}  // namespace cistern
