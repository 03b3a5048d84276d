// The data plane's one wire format: a fixed header and packed little-endian arrays behind it.
//
//   offset  size  field
//        0     4  magic "CSF1"
//        4     2  kind (FrameKind)
//        6     2  status        0 in requests; in replies an absl::StatusCode, and a body that is
//                               its text
//        8     8  cluster_id
//       16     8  schema_hash
//       24     8  shard_map_hash
//       32     8  epoch
//       40     8  pass          push: the open pass; pull: 0
//       48     8  sequence      push: 0, 1, 2 ... per (worker, server) in a pass
//       56     4  worker
//       60     4  table
//       64     4  count         keys, or rows of a dense range
//       68     4  stride        cells (4-byte floats) a value; dense: columns
//       72     8  start         dense: first row of the range; scan: cursor
//       80     4  flags         FrameFlags
//       84     4  shard         scan: the shard
//       88     8  body_hash     push, push-dense: BodyHash with the writer's secret; replies of
//                               pull, pull-dense, scan that come over a socket: BodyHash; else 0
//       96        body
//
// Body of a pull:        keys u64[count]; the reply: values f32[count * stride], full u8[count]
//         a push:        keys u64[count], values f32[count * stride], full u8[count]
//         a pull-dense:  empty; the reply: f32[count * stride], row-major
//         a push-dense:  f32[count * stride], row-major; kGradient: one gradient a row, stride 1
//         a scan:        empty; the reply as a push's body; `start` of the reply is the next
//         cursor,
//                        0 when the shard is done
//
// Keys of one request are distinct, and all belong to shards of the server that is asked; senders
// order them by shard, which makes the receiver fast but is not required. `full` says whether a
// value holds its embedx; a short one occupies its full stride on the wire, with zeros.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/base/types.h"

namespace cistern {

enum class FrameKind : uint16_t { kPull = 1, kPush = 2, kPullDense = 3, kPushDense = 4, kScan = 5 };

enum FrameFlags : uint32_t {
  // Pull: an absent key reads as zeros with full = 0xFF, instead of its initial value.
  kAbsentIsZero = 1,
  // Push-dense: one gradient a row (stride 1), for the table's rule, instead of the row's columns.
  kGradient = 2,
};
// The largest body that either side sends or accepts: a request whose reply would be larger is
// refused, so that no header makes a receiver allocate without bound.
inline constexpr uint64_t kMaxBodyBytes = 64ull << 20;
// The largest stride: well above a value of the largest table (4096 weights with Adam).
inline constexpr uint32_t kMaxStride = 1u << 16;

struct FrameHeader {
  uint32_t magic = 0x31465343;  // "CSF1"
  uint16_t kind = 0;
  uint16_t status = 0;
  uint64_t cluster_id = 0;
  uint64_t schema_hash = 0;
  uint64_t shard_map_hash = 0;
  uint64_t epoch = 0;
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

// The verb of a kind, for messages: "pull", "push-dense" ...; "frame" for one that does not exist.
const char* FrameKindName(FrameKind kind);

// Bytes in pieces, each kept alive by its owner: what travels, without copies.
//
// Threads: a Frame is one thread's at a time; copies share the bytes, which never change.
class Frame {
 public:
  struct Piece {
    const char* data = nullptr;
    size_t size = 0;
    std::shared_ptr<const void> owner;
  };

  Frame() = default;
  // Takes over `bytes`.
  explicit Frame(std::string bytes);

  void Append(Piece piece);
  // Appends `size` bytes of new, unset memory (8-byte aligned) and returns them to be filled before
  // the frame is sent.
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
  // Copies the next `size` bytes; false, and nothing consumed, if there are fewer.
  bool Read(void* out, size_t size) {
    if (size > static_cast<size_t>(end_ - at_)) return ReadAcross(static_cast<char*>(out), size);
    if (size > 0) std::memcpy(out, at_, size);
    at_ += size;
    left_ -= size;
    return true;
  }

 private:
  bool ReadAcross(char* out, size_t size);

  const Frame* frame_;
  size_t next_piece_ = 0;                      // the piece behind the one that is being read
  const char *at_ = nullptr, *end_ = nullptr;  // what is left of that one
  size_t left_;
};

// XXH3 of the bytes behind the header, seeded with `secret`: what `body_hash` says. The secret is
// that of the writer's claim (v1.Identity.secret): who does not know it cannot make a push that is
// taken.
uint64_t BodyHash(const Frame& frame, uint64_t secret = 0);

// The same frame with its `body_hash` set; the body is shared. At least a header.
Frame WithBodyHash(const Frame& frame);
// kUnavailable if the header names a hash (not 0) and the body has another: the call may be made
// again.
absl::Status CheckReplyHash(const FrameHeader& header, const Frame& reply);

// A frame that begins with `header`; the body is appended to it.
Frame StartFrame(const FrameHeader& header);

// Reads and checks the header: magic, kind `expected`, and that the body has exactly the bytes that
// its counts ask for as a request (`reply` false) or as a reply. A reply whose status field is set
// is returned as that error. kInvalidArgument with what is wrong.
absl::StatusOr<FrameHeader> ReadHeader(FrameReader& reader, FrameKind expected, bool reply);

// The header of a reply to `request`: the same identity and place, no error, an empty body.
FrameHeader ReplyHeader(const FrameHeader& request);

// A reply that says `status` (not OK), for the request `header`.
Frame ErrorFrame(const FrameHeader& header, const absl::Status& status);

}  // namespace cistern
