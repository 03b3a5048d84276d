#include "worker/data/format/byte_stream.h"

#include <algorithm>
#include <cstring>

#include "worker/data/storage/storage.h"

namespace cistern::data {
namespace {

constexpr size_t kFirstBytes = 4096;

}  // namespace

absl::StatusOr<std::unique_ptr<ByteStream>> ByteStream::Open(const std::string& path) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> source, OpenSource(path));
  return Over(std::move(source));
}

// Grows in steps, because a corrupt count can request far more bytes than the source has.
void ByteStream::Grow(size_t most) {
  buffer_.resize(std::min(most, std::max(4 * buffer_.size(), kFirstBytes)));
}

absl::Status ByteStream::Fill(size_t n) {
  if (available() >= n || at_end_) return absl::OkStatus();
  if (begin_ > 0) std::memmove(buffer_.data(), buffer_.data() + begin_, available());
  end_ -= begin_;
  begin_ = 0;
  if (filled_ && buffer_.size() < kBufferBytes) Grow(kBufferBytes);
  while (end_ < n) {
    if (end_ == buffer_.size()) Grow(n);
    CISTERN_ASSIGN_OR_RETURN(const size_t got,
                             source_->Read(buffer_.data() + end_, buffer_.size() - end_));
    if (got == 0) {
      at_end_ = true;
      break;
    }
    end_ += got;
  }
  filled_ = end_ == buffer_.size();
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> ByteStream::Skip(uint64_t n) {
  uint64_t done = 0;
  while (done < n) {
    CISTERN_RETURN_IF_ERROR(Fill(static_cast<size_t>(std::min<uint64_t>(n - done, kFirstBytes))));
    const size_t count = static_cast<size_t>(std::min<uint64_t>(n - done, available()));
    if (count == 0) break;
    Consume(count);
    done += count;
  }
  return done;
}

absl::StatusOr<bool> ByteStream::Seek(uint64_t offset) {
  CISTERN_ASSIGN_OR_RETURN(const bool found, source_->Seek(offset));
  if (!found) return false;
  begin_ = end_ = 0;
  offset_ = offset;
  filled_ = at_end_ = false;
  return true;
}

}  // namespace cistern::data
