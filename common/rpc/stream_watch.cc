#include "common/rpc/stream_watch.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace cistern {
namespace {

constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
enum Type : uint8_t { kData = 0, kHeaders = 1, kReset = 3, kSettings = 4, kContinuation = 9 };
constexpr uint8_t kEndStream = 1, kAcknowledged = 1;

// gRPC's memory per byte of headers (measured: 140, for one-byte references into its table), and
// per stream in addition to headers (measured: 17 KB).
constexpr uint64_t kMemoryOfHeaderByte = 160;
constexpr uint64_t kMemoryOfStream = 16u << 10;
// The server's end of a stream may be on its way while the client begins the next one.
constexpr uint32_t kStreamsOnTheWay = 64;

uint32_t BigEndian(const char* bytes, int count) {
  uint32_t value = 0;
  for (int i = 0; i < count; ++i) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

}  // namespace

StreamWatch::StreamWatch(uint32_t max_streams)
    : max_open_(std::max(max_streams + kStreamsOnTheWay, kMaxEarlyStreams)) {}

bool StreamWatch::Cursor::Next(absl::string_view* bytes, FrameHead* frame) {
  const size_t skipped = std::min<size_t>(payload_left, bytes->size());
  payload_left -= static_cast<uint32_t>(skipped);
  bytes->remove_prefix(skipped);
  const size_t copied = std::min(sizeof(head) - head_bytes, bytes->size());
  if (copied == 0) return false;
  std::memcpy(head + head_bytes, bytes->data(), copied);
  head_bytes += static_cast<uint32_t>(copied);
  bytes->remove_prefix(copied);
  if (head_bytes < sizeof(head)) return false;
  head_bytes = 0;
  frame->length = payload_left = BigEndian(head, 3);
  frame->type = static_cast<uint8_t>(head[3]);
  frame->flags = static_cast<uint8_t>(head[4]);
  frame->stream = BigEndian(head + 5, 4) & 0x7fffffff;
  return true;
}

absl::Status StreamWatch::FromClient(absl::string_view bytes) {
  absl::MutexLock lock(&mutex_);
  CISTERN_RETURN_IF_ERROR(status_);
  const absl::string_view preface =
      bytes.substr(0, std::min(bytes.size(), kPreface.size() - preface_bytes_));
  if (preface != kPreface.substr(preface_bytes_, preface.size())) {
    return status_ = absl::InvalidArgumentError("it does not speak HTTP/2");
  }
  preface_bytes_ += preface.size();
  bytes.remove_prefix(preface.size());
  FrameHead frame = {};
  while (status_.ok() && client_.Next(&bytes, &frame)) status_ = OnClientFrame(frame);
  return status_;
}

absl::Status StreamWatch::OnClientFrame(const FrameHead& frame) {
  switch (frame.type) {
    case kHeaders:
    case kContinuation:
      return OnHeaders(frame);
    case kReset:
      return OnReset(frame);
    case kSettings:
      if ((frame.flags & kAcknowledged) != 0) acknowledged_ = true;
      return absl::OkStatus();
    default:
      return absl::OkStatus();
  }
}

absl::Status StreamWatch::OnHeaders(const FrameHead& frame) {
  if (frame.type == kHeaders) {
    block_bytes_ = 0;
    continuations_ = 0;
    if (frame.stream > last_stream_) {
      last_stream_ = frame.stream;
      open_[frame.stream] = 0;
      ++streams_;
    }
  } else {
    ++continuations_;
  }
  block_bytes_ += frame.length;
  if (block_bytes_ > kMaxHeaderBytes || continuations_ > kMaxContinuations) {
    return absl::ResourceExhaustedError(absl::StrCat("the headers of a call exceed ",
                                                     kMaxHeaderBytes, " bytes or ",
                                                     kMaxContinuations, " continuations"));
  }
  const auto stream = open_.find(frame.stream);
  if (stream != open_.end()) {
    stream->second += frame.length;
    open_header_bytes_ += frame.length;
  }
  if (!acknowledged_ && streams_ > kMaxEarlyStreams) {
    return absl::ResourceExhaustedError("it makes calls without acknowledging the settings");
  }
  if (open_.size() > max_open_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("it makes more than ", max_open_, " calls at once"));
  }
  return absl::OkStatus();
}

absl::Status StreamWatch::OnReset(const FrameHead& frame) {
  if (!open_.contains(frame.stream)) return absl::OkStatus();
  CloseStream(frame.stream);
  const absl::Time now = absl::Now();
  canceled_ = Canceled(now) + 1;
  last_canceled_ = now;
  if (canceled_ <= kMaxCanceled) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("it cancels calls, more than ", kCanceledPerSecond, " a second"));
}

double StreamWatch::Canceled(absl::Time now) const {
  const double seconds = std::max(absl::ToDoubleSeconds(now - last_canceled_), 0.0);
  return std::max(canceled_ - seconds * kCanceledPerSecond, 0.0);
}

void StreamWatch::CloseStream(uint32_t stream) {
  const auto found = open_.find(stream);
  if (found == open_.end()) return;
  open_header_bytes_ -= found->second;
  open_.erase(found);
}

void StreamWatch::FromServer(absl::string_view bytes) {
  absl::MutexLock lock(&mutex_);
  FrameHead frame = {};
  while (server_.Next(&bytes, &frame)) {
    const bool ends = (frame.type == kHeaders || frame.type == kData) && (frame.flags & kEndStream);
    if (ends || frame.type == kReset) CloseStream(frame.stream);
  }
}

uint64_t StreamWatch::held_bytes() const {
  absl::MutexLock lock(&mutex_);
  const double streams = static_cast<double>(open_.size()) + Canceled(absl::Now());
  return open_header_bytes_ * kMemoryOfHeaderByte +
         static_cast<uint64_t>(streams) * kMemoryOfStream;
}

absl::Status StreamWatch::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

}  // namespace cistern
