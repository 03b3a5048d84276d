// Reads a part of a file sequentially, in large aligned pieces that bypass the page cache.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/base/aligned_buffer.h"
#include "common/base/status.h"
#include "common/io/file_system.h"

namespace cistern {

// Threads: one at a time. Use several readers on parts of one file to keep more than one read in
// flight, so that the disk is busy while other threads process their pieces.
class PieceReader {
 public:
  static constexpr size_t kPieceBytes = size_t{1} << 20;

  // file: outlives this. end: the file offset at which the part ends; no byte after it is read,
  // except for the rest of its page. piece_bytes: whole pages.
  PieceReader(const ReadableFile* file, uint64_t end, size_t piece_bytes = kPieceBytes)
      : file_(file), end_(end), piece_bytes_(piece_bytes) {}

  // The bytes offset .. offset+size-1, all before `end`; valid until the next call. Ascending
  // offsets are fast. An 8-byte-aligned offset in the file gives an 8-byte-aligned address.
  absl::StatusOr<absl::string_view> Get(uint64_t offset, size_t size);

 private:
  const ReadableFile* file_;
  uint64_t end_;
  size_t piece_bytes_;
  AlignedBuffer buffer_;
  uint64_t begin_ = 0, held_ = 0;  // the buffer holds bytes begin_ .. begin_ + held_ - 1
};

}  // namespace cistern
