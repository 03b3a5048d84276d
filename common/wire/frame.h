// The wire format of the data plane: a fixed header followed by packed little-endian arrays.
//
// clang-format off
//   offset  size  field
//        0     4  magic "CSF1"
//        4     2  kind (FrameKind)
//        6     2  status        requests: 0; replies: an absl::StatusCode; if it is not OK, the
//                               body is the error message
//        8     8  cluster_id
//       16     8  schema_hash
//       24     8  shard_map_hash
//       32     8  term
//       40     8  pass          push: the open pass; pull: 0, or the pass that will train the rows
//                               of a bounded table
//       48     8  sequence      push: 0, 1, 2 ... per worker, server and pass
//       56     4  worker
//       60     4  table
//       64     4  count         keys, or rows of a dense range
//       68     4  stride        cells (4-byte floats) per value; dense: columns
//       72     8  start         dense: first row of the range; scan: cursor
//       80     4  flags         FrameFlags
//       84     4  shard         scan: the shard
//       88     8  body_hash     push, push-dense: BodyHash with the writer's secret; replies to
//                               pull, pull-dense and scan over a socket: BodyHash; otherwise 0
//       96        body
//
// Body of a pull:        keys u64[count]; reply: values f32[count * stride], has_embedx u8[count]
//         a push:        keys u64[count], values f32[count * stride], has_embedx u8[count];
//                        kRemoval: stride 0, and has_embedx is 0
//         a pull-dense:  empty; the reply: f32[count * stride], row-major
//         a push-dense:  f32[count * stride], row-major; kGradient: one gradient per row, stride 1
//         a scan:        empty; the reply: the same as the body of a push; `start` of the reply is
//                        the next cursor, 0 when the shard is done
// clang-format on
//
// The keys of one request are distinct and belong to shards of the receiving server. Senders order
// them by shard, which makes the receiver faster but is not required. `has_embedx` tells whether a
// value includes its embedx; a value without it still occupies its full stride, padded with zeros.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/check.h"
#include "common/base/shared_array.h"
#include "common/base/status.h"
#include "common/base/types.h"

namespace cistern {

enum class FrameKind : uint16_t { kPull = 1, kPush = 2, kPullDense = 3, kPushDense = 4, kScan = 5 };

enum FrameFlags : uint32_t {
  // Pull: an absent key reads as zeros with has_embedx = 0xFF, instead of its initial value.
  kAbsentIsZero = 1,
  // Push-dense: one gradient per row (stride 1), to which the server applies the table's rule,
  // instead of the row's columns.
  kGradient = 2,
  // Scan: only the rows in the server's memory cache, the most shown first. A page may be empty
  // although the shard is not done.
  kCachedOnly = 4,
  // Push: in a pass that was begun as a replica, the rows of these keys go. Stride 0.
  kRemoval = 8,
};
// The largest body that either side sends or accepts. A request whose reply would be larger is
// refused, so that no header can make a receiver allocate without bound.
inline constexpr uint64_t kMaxBodyBytes = 64ull << 20;
// The largest stride, well above that of the largest value (4096 weights with Adam).
inline constexpr uint32_t kMaxStride = 1u << 16;

struct FrameHeader {
  uint32_t magic = 0x31465343;  // "CSF1"
  uint16_t kind = 0;
  uint16_t status = 0;
  uint64_t cluster_id = 0;
  uint64_t schema_hash = 0;
  uint64_t shard_map_hash = 0;
  uint64_t term = 0;
  uint64_t pass = 0;
  uint64_t sequence = 0;
  uint32_t worker = 0;
  uint32_t table = 0;
  uint32_t count = 0;
  uint32_t stride = 0;
  uint64_t start = 0;
  uint32_t flags = 0;
  uint32_t shard = 0;
  uint64_t body_hash = 0;
};
static_assert(sizeof(FrameHeader) == 96);

// The name of a kind for messages: "pull", "push-dense" ...; "frame" for an unknown kind.
const char* FrameKindName(FrameKind kind);

// A message as a list of byte ranges, each kept alive by its owner, so that nothing is copied.
//
// Threads: one at a time. Copies share the bytes, which never change.
class Frame {
 public:
  struct Piece {
    const char* data = nullptr;
    size_t size = 0;
    std::shared_ptr<const void> owner;
    // The bytes are memory of this process that nothing else waits for, so a receiver may hold them
    // long after the call. false: they belong to a connection.
    bool keepable = false;
  };

  Frame() = default;
  // Takes ownership of `bytes`.
  explicit Frame(std::string bytes);

  void Append(Piece piece);
  // Appends `size` bytes of uninitialized memory (8-byte aligned) and returns them; the caller
  // fills them before it sends the frame.
  char* AppendBuffer(size_t size);
  void AppendBytes(const void* data, size_t size) {
    if (size > 0) std::memcpy(AppendBuffer(size), data, size);
  }

  size_t size() const { return size_; }
  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  std::vector<Piece> pieces_;
  size_t size_ = 0;
};

// Reads a frame from front to back. Never reads past its end.
class FrameReader {
 public:
  explicit FrameReader(const Frame& frame) : frame_(&frame), left_(frame.size()) {}
  size_t left() const { return left_; }
  // Copies the next `size` bytes. If fewer are left, returns false and consumes nothing.
  bool Read(void* out, size_t size) {
    if (size > static_cast<size_t>(end_ - at_)) return ReadAcross(static_cast<char*>(out), size);
    if (size > 0) std::memcpy(out, at_, size);
    at_ += size;
    left_ -= size;
    return true;
  }
  // Reads `count` numbers, which must be left, and keeps them beyond the call: without a copy if
  // the bytes are keepable.
  template <class T>
  SharedArray<T> TakeArray(size_t count) {
    std::shared_ptr<const void> owner;
    if (const char* shared = Share(count * sizeof(T), alignof(T), &owner)) {
      return {{reinterpret_cast<const T*>(shared), count}, std::move(owner)};
    }
    auto copy = std::make_shared_for_overwrite<T[]>(count);
    CISTERN_CHECK(Read(copy.get(), count * sizeof(T)));
    const absl::Span<const T> values(copy.get(), count);
    return {values, std::move(copy)};
  }

 private:
  bool ReadAcross(char* out, size_t size);
  // Shares the next `size` bytes; null if they are not keepable, span pieces or are misaligned.
  const char* Share(size_t size, size_t alignment, std::shared_ptr<const void>* owner);

  const Frame* frame_;
  size_t next_piece_ = 0;                      // index of the piece after the current one
  const char *at_ = nullptr, *end_ = nullptr;  // the unread part of the current piece
  size_t left_;
};

// XXH3 of the bytes after the header, seeded with `secret`: the value of `body_hash`. The secret is
// that of the writer's claim (v1.Identity.secret), so only the writer can create a push that a
// server accepts.
uint64_t BodyHash(const Frame& frame, uint64_t secret = 0);

// Returns the frame, which has at least a header, with `body_hash` set; shares the body.
Frame WithBodyHash(const Frame& frame);
// kUnavailable if the header has a hash (not 0) and the body does not match it: the call may be
// retried.
absl::Status CheckReplyHash(const FrameHeader& header, const Frame& reply);

// Returns a frame that consists of `header`; the caller appends the body.
Frame StartFrame(const FrameHeader& header);

// Reads and validates the header: the magic, the kind `expected`, and that the body has exactly the
// size that the counts require for a request (`reply` false) or for a reply. If the status field of
// a reply is set, returns that error. kInvalidArgument, stating the cause, for a malformed frame.
absl::StatusOr<FrameHeader> ReadHeader(FrameReader& reader, FrameKind expected, bool reply);

// The header of a reply to `request`: the same identity and position, no error, an empty body.
FrameHeader ReplyHeader(const FrameHeader& request);

// A reply with the error `status` (not OK) to the request with `header`.
Frame ErrorFrame(const FrameHeader& header, const absl::Status& status);

}  // namespace cistern
