#include "common/io/piece_reader.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"

namespace cistern {

absl::StatusOr<absl::string_view> PieceReader::Get(uint64_t offset, size_t size) {
  CISTERN_CHECK(size <= end_ && offset <= end_ - size);
  const uint64_t begin = AlignedBuffer::RoundDown(offset);
  if (offset < begin_ || offset + size > begin_ + held_) {
    const uint64_t whole = std::min<uint64_t>(AlignedBuffer::RoundUp(end_), file_->bytes());
    const size_t wanted = AlignedBuffer::RoundUp(offset + size - begin);
    const size_t room = std::max(piece_bytes_, wanted);
    if (buffer_.size() < room) {
      held_ = 0;
      buffer_ = AlignedBuffer(room);
    }
    // Bytes of the new piece that are already in the buffer are not read again.
    const uint64_t kept = begin >= begin_ && begin < begin_ + held_ ? begin_ + held_ - begin : 0;
    const bool aligned = AlignedBuffer::IsAligned(kept);
    if (aligned && kept > 0) std::memmove(buffer_.data(), buffer_.data() + (begin - begin_), kept);
    begin_ = begin;
    held_ = aligned ? kept : 0;
    const size_t more = std::min<uint64_t>(room, whole - begin) - held_;
    const absl::Status read = file_->Read(begin + held_, more, buffer_.data() + held_);
    if (!read.ok()) {
      held_ = 0;
      return read;
    }
    held_ += more;
  }
  return absl::string_view(buffer_.data() + (offset - begin_), size);
}

}  // namespace cistern
