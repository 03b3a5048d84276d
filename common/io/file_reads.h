// Pieces of several files that are read together.
//
// A disk serves many requests in the time that one takes, so a caller adds all the pieces that it
// needs, whatever they are for, and waits once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/aligned_buffer.h"
#include "common/base/status.h"
#include "common/io/file_system.h"
#include "common/io/read_queue.h"

namespace cistern {

// Threads: one at a time.
class FileReads {
 public:
  // max_bytes: of memory for all pieces, unless the first one alone is larger.
  explicit FileReads(size_t max_bytes) : max_bytes_(max_bytes) {}

  // Adds `size` > 0 bytes at `offset` of `file`, which outlives this, and returns their place;
  // nothing if there is no room left. Pieces of one file that are added in ascending order share
  // requests.
  std::optional<size_t> Add(const ReadableFile& file, uint64_t offset, size_t size);

  // Reads them all. Errors as ReadableFile::ReadMany.
  absl::Status Read();

  // Forgets the pieces, and keeps the memory for the next ones.
  void Clear();

  // The bytes of the piece at a place, from Read to Clear.
  const char* data(size_t place) const { return buffer_.data() + place; }

 private:
  struct OfFile {
    const ReadableFile* file = nullptr;
    std::vector<ReadRequest> requests;
    std::vector<size_t> places;  // of the requests, in the buffer
  };
  OfFile& Of(const ReadableFile& file);

  const size_t max_bytes_;
  std::vector<OfFile> files_;
  AlignedBuffer buffer_;
  size_t bytes_ = 0;
  const ReadableFile* newest_ = nullptr;  // the file of the request that was added last
};

}  // namespace cistern
