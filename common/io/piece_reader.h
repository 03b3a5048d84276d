// Reads a part of a file from front to back, in large pieces that need no page cache.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/base/aligned_buffer.h"
#include "common/base/status.h"
#include "common/io/file_system.h"

namespace cistern {

// Threads: one at a time; several read parts of one file, so that the disk has more than one piece
// to fetch, and always something to do while others work on theirs.
class PieceReader {
 public:
  static constexpr size_t kPieceBytes = size_t{1} << 20;

  // file outlives this. end: where the part ends, in bytes of the file; nothing behind it is read,
  // but for what is left of its page.
  PieceReader(const ReadableFile* file, uint64_t end) : file_(file), end_(end) {}

  // The bytes offset .. offset+size-1, which lie before `end`; good until the next call. Offsets
  // that ascend are fast. What lies at a multiple of 8 bytes in the file does so here.
  absl::StatusOr<absl::string_view> Get(uint64_t offset, size_t size);

 private:
  const ReadableFile* file_;
  uint64_t end_;
  AlignedBuffer buffer_;
  uint64_t begin_ = 0, held_ = 0;  // bytes begin_ .. begin_ + held_ - 1 of the file are in it
};

}  // namespace cistern
