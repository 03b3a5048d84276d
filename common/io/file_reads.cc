#include "common/io/file_reads.h"

#include <algorithm>

#include "common/base/check.h"

namespace cistern {
namespace {

constexpr size_t kMaxRequestBytes = size_t{256} << 10;
// A request costs a disk as much as reading seven pages, so a gap of up to six is read over.
constexpr uint64_t kMaxGapBytes = 6 * AlignedBuffer::kAlignment;

}  // namespace

FileReads::OfFile& FileReads::Of(const ReadableFile& file) {
  for (OfFile& of : files_) {
    if (of.file == &file) return of;
  }
  files_.push_back({&file, {}, {}});
  return files_.back();
}

std::optional<size_t> FileReads::Add(const ReadableFile& file, uint64_t offset, size_t size) {
  CISTERN_CHECK(size > 0);
  const uint64_t begin = AlignedBuffer::RoundDown(offset);
  const uint64_t end = AlignedBuffer::RoundUp(offset + size);
  OfFile& of = Of(file);
  // Only the newest request can grow: behind the others there are bytes of the next one.
  if (newest_ == &file) {
    ReadRequest& request = of.requests.back();
    const uint64_t request_end = request.offset + request.size;
    const uint64_t grown_end = std::max(end, request_end);
    if (begin >= request.offset && begin <= request_end + kMaxGapBytes &&
        grown_end - request.offset <= kMaxRequestBytes) {
      const size_t more = grown_end - request_end;
      if (bytes_ + more > max_bytes_) return std::nullopt;
      request.size += more;
      bytes_ += more;
      return of.places.back() + (offset - request.offset);
    }
  }
  if (bytes_ > 0 && bytes_ + (end - begin) > max_bytes_) return std::nullopt;
  of.requests.push_back({begin, static_cast<size_t>(end - begin), nullptr});
  of.places.push_back(bytes_);
  newest_ = &file;
  bytes_ += end - begin;
  return of.places.back() + (offset - begin);
}

absl::Status FileReads::Read() {
  if (bytes_ > buffer_.size()) {
    buffer_ = AlignedBuffer(AlignedBuffer::RoundUp(std::max(bytes_, max_bytes_)));
  }
  for (OfFile& of : files_) {
    for (size_t i = 0; i < of.requests.size(); ++i) {
      of.requests[i].out = buffer_.data() + of.places[i];
    }
    if (of.requests.empty()) continue;
    CISTERN_RETURN_IF_ERROR(of.file->ReadMany(of.requests));
  }
  return absl::OkStatus();
}

void FileReads::Clear() {
  for (OfFile& of : files_) {
    of.requests.clear();
    of.places.clear();
  }
  bytes_ = 0;
  newest_ = nullptr;
}

}  // namespace cistern
