#include "common/wire/frame.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/stream_hash.h"

namespace cistern {
namespace {

static_assert(std::endian::native == std::endian::little, "frames are little-endian in memory");

constexpr size_t kMaxErrorText = 64 << 10;

bool IsKind(uint16_t kind) {
  return kind >= 1 && kind <= 5;
}

// The size of `count` values and their flags. Cannot overflow: both factors are bounded.
uint64_t ValueBytes(const FrameHeader& header) {
  return uint64_t{header.count} * (uint64_t{header.stride} * sizeof(float) + 1);
}
uint64_t DenseBytes(const FrameHeader& header) {
  return uint64_t{header.count} * header.stride * sizeof(float);
}

uint64_t RequestBodyBytes(const FrameHeader& header) {
  switch (static_cast<FrameKind>(header.kind)) {
    case FrameKind::kPull:
      return uint64_t{header.count} * sizeof(Key);
    case FrameKind::kPush:
      return uint64_t{header.count} * sizeof(Key) + ValueBytes(header);
    case FrameKind::kPushDense:
      return DenseBytes(header);
    case FrameKind::kPullDense:
    case FrameKind::kScan:
      return 0;
  }
  return 0;
}

uint64_t ReplyBodyBytes(const FrameHeader& header) {
  switch (static_cast<FrameKind>(header.kind)) {
    case FrameKind::kPull:
      return ValueBytes(header);
    case FrameKind::kScan:
      return uint64_t{header.count} * sizeof(Key) + ValueBytes(header);
    case FrameKind::kPullDense:
      return DenseBytes(header);
    case FrameKind::kPush:
    case FrameKind::kPushDense:
      return 0;
  }
  return 0;
}

absl::Status Malformed(const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("malformed frame: ", why));
}

// Parses the error in the body of a reply.
absl::Status ReadError(FrameReader& reader, uint16_t code) {
  if (code > static_cast<uint16_t>(absl::StatusCode::kUnauthenticated)) {
    return Malformed(absl::StrCat("status ", code, " does not exist"));
  }
  std::string text(std::min(reader.left(), kMaxErrorText), '\0');
  CISTERN_CHECK(reader.Read(text.data(), text.size()));
  return absl::Status(static_cast<absl::StatusCode>(code), text);
}

}  // namespace

const char* FrameKindName(FrameKind kind) {
  switch (kind) {
    case FrameKind::kPull:
      return "pull";
    case FrameKind::kPush:
      return "push";
    case FrameKind::kPullDense:
      return "pull-dense";
    case FrameKind::kPushDense:
      return "push-dense";
    case FrameKind::kScan:
      return "scan";
  }
  return "frame";
}

Frame::Frame(std::string bytes) {
  if (bytes.empty()) return;
  auto owner = std::make_shared<const std::string>(std::move(bytes));
  const char* data = owner->data();
  const size_t size = owner->size();
  Append({data, size, std::move(owner)});
}

void Frame::Append(Piece piece) {
  if (piece.size == 0) return;
  size_ += piece.size;
  pieces_.push_back(std::move(piece));
}

char* Frame::AppendBuffer(size_t size) {
  // Allocates words, so that the memory is aligned for every array in a body.
  auto words = std::make_shared_for_overwrite<uint64_t[]>((size + 7) / 8);
  char* data = reinterpret_cast<char*>(words.get());
  Append({data, size, std::move(words), /*keepable=*/true});
  return data;
}

const char* FrameReader::Share(size_t size, size_t alignment, std::shared_ptr<const void>* owner) {
  if (size == 0 || size > left_) return nullptr;
  if (at_ == end_) {
    const Frame::Piece& piece = frame_->pieces()[next_piece_++];
    at_ = piece.data;
    end_ = piece.data + piece.size;
  }
  const Frame::Piece& piece = frame_->pieces()[next_piece_ - 1];
  const bool aligned = reinterpret_cast<uintptr_t>(at_) % alignment == 0;
  if (!piece.keepable || size > static_cast<size_t>(end_ - at_) || !aligned) return nullptr;
  *owner = piece.owner;
  left_ -= size;
  return std::exchange(at_, at_ + size);
}

bool FrameReader::ReadAcross(char* out, size_t size) {
  if (size > left_) return false;
  left_ -= size;
  while (true) {
    const size_t part = std::min(size, static_cast<size_t>(end_ - at_));
    if (part > 0) std::memcpy(out, at_, part);
    at_ += part;
    out += part;
    size -= part;
    if (size == 0) return true;
    const Frame::Piece& piece = frame_->pieces()[next_piece_++];
    at_ = piece.data;
    end_ = piece.data + piece.size;
  }
}

uint64_t BodyHash(const Frame& frame, uint64_t secret) {
  StreamHash hash(secret);
  size_t skip = sizeof(FrameHeader);
  for (const Frame::Piece& piece : frame.pieces()) {
    const size_t skipped = std::min(skip, piece.size);
    skip -= skipped;
    hash.Add(piece.data + skipped, piece.size - skipped);
  }
  return hash.value();
}

Frame WithBodyHash(const Frame& frame) {
  FrameHeader header;
  CISTERN_CHECK(FrameReader(frame).Read(&header, sizeof(header)));
  header.body_hash = BodyHash(frame);
  Frame hashed = StartFrame(header);
  size_t skip = sizeof(header);
  for (Frame::Piece piece : frame.pieces()) {
    const size_t skipped = std::min(skip, piece.size);
    skip -= skipped;
    piece.data += skipped;
    piece.size -= skipped;
    hashed.Append(std::move(piece));
  }
  return hashed;
}

absl::Status CheckReplyHash(const FrameHeader& header, const Frame& reply) {
  if (header.body_hash == 0 || header.body_hash == BodyHash(reply)) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("checksum mismatch in transit: the bytes of a ",
                   FrameKindName(static_cast<FrameKind>(header.kind)),
                   " reply differ from those that the server sent; try again"));
}

Frame StartFrame(const FrameHeader& header) {
  Frame frame;
  frame.AppendBytes(&header, sizeof(header));
  return frame;
}

absl::StatusOr<FrameHeader> ReadHeader(FrameReader& reader, FrameKind expected, bool reply) {
  FrameHeader header;
  if (!reader.Read(&header, sizeof(header))) {
    return Malformed(
        absl::StrCat(reader.left(), " bytes are fewer than the ", sizeof(header), " of a header"));
  }
  if (header.magic != FrameHeader().magic) {
    return Malformed(absl::StrCat("magic 0x", absl::Hex(header.magic), " is not 0x",
                                  absl::Hex(FrameHeader().magic),
                                  "; the other side runs another version of Cistern"));
  }
  if (!IsKind(header.kind) || header.kind != static_cast<uint16_t>(expected)) {
    return Malformed(absl::StrCat("kind ", header.kind, ", expected a ", FrameKindName(expected)));
  }
  if (header.status != 0) {
    return reply ? ReadError(reader, header.status)
                 : Malformed(absl::StrCat("a request with status ", header.status));
  }
  if (header.stride > kMaxStride) {
    return Malformed(absl::StrCat("stride ", header.stride, " is above ", kMaxStride));
  }
  const uint64_t body = reply ? ReplyBodyBytes(header) : RequestBodyBytes(header);
  if (std::max(body, ReplyBodyBytes(header)) > kMaxBodyBytes) {
    return Malformed(absl::StrCat("a ", FrameKindName(expected), " of ", header.count,
                                  " times stride ", header.stride, " exceeds ", kMaxBodyBytes,
                                  " bytes; send fewer at a time"));
  }
  if (reader.left() != body) {
    return Malformed(absl::StrCat("a ", FrameKindName(expected), reply ? " reply" : "", " of ",
                                  header.count, " times stride ", header.stride, " has ",
                                  reader.left(), " bytes of body instead of ", body));
  }
  return header;
}

FrameHeader ReplyHeader(const FrameHeader& request) {
  FrameHeader reply = request;
  reply.status = 0;
  reply.count = 0;
  reply.body_hash = 0;
  return reply;
}

Frame ErrorFrame(const FrameHeader& header, const absl::Status& status) {
  CISTERN_CHECK(!status.ok());
  FrameHeader reply = ReplyHeader(header);
  reply.magic = FrameHeader().magic;
  reply.status = static_cast<uint16_t>(status.code());
  Frame frame = StartFrame(reply);
  frame.AppendBytes(status.message().data(), std::min(status.message().size(), kMaxErrorText));
  return frame;
}

}  // namespace cistern
