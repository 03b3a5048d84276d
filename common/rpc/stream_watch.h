// Follows the HTTP/2 frames (RFC 9113) of one connection, and ends connections whose headers or
// streams would take memory without a bound.
//
// gRPC (1.51) applies its limits on headers and streams only once the client has acknowledged its
// settings, and its limit on headers to each frame. A client that sends neither the acknowledgement
// nor the end of its headers can make a byte take 140 bytes of memory. A watch needs nine bytes of
// each frame, so bulk transfers do not notice it.
#pragma once

#include <cstdint>
#include <cstring>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/status.h"

namespace cistern {

// Threads: all methods may be called from any thread. The bytes of one direction come in order.
class StreamWatch {
 public:
  // Limits for any client. A client of gRPC stays far below each of them.
  static constexpr uint32_t kMaxHeaderBytes = 8 << 10;  // of one block: HEADERS and CONTINUATION
  static constexpr int kMaxContinuations = 16;          // of one block
  static constexpr uint32_t kMaxEarlyStreams = 128;     // before settings are acknowledged
  static constexpr double kMaxCanceled = 1000;          // calls that the client resets at once
  static constexpr double kCanceledPerSecond = 100;     // and permanently

  // max_streams: the number of concurrent streams that the server's settings allow.
  explicit StreamWatch(uint32_t max_streams);

  // The next bytes from the client. kResourceExhausted with the reason, now and from then on, if
  // the client exceeds a limit; kInvalidArgument if it does not speak HTTP/2. The connection must
  // be closed then, and the bytes must not reach gRPC.
  absl::Status FromClient(absl::string_view bytes);
  // The next bytes to the client, once they are written.
  void FromServer(absl::string_view bytes);

  // An upper bound of gRPC's memory for headers, open streams, and streams canceled recently.
  uint64_t held_bytes() const;
  // The last result of FromClient.
  absl::Status status() const;

 private:
  struct FrameHead {
    uint32_t length;
    uint8_t type, flags;
    uint32_t stream;
  };
  // The position within the frames of one direction.
  struct Cursor {
    char head[9];
    uint32_t head_bytes = 0;    // number of bytes in `head`
    uint32_t payload_left = 0;  // to skip
    // Skips to the end of the next frame head; false: all bytes are consumed.
    bool Next(absl::string_view* bytes, FrameHead* frame);
  };

  absl::Status OnClientFrame(const FrameHead& frame) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status OnHeaders(const FrameHead& frame) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status OnReset(const FrameHead& frame) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The calls canceled so far, minus those that the time since has forgiven.
  double Canceled(absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CloseStream(uint32_t stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint32_t max_open_;
  mutable absl::Mutex mutex_;
  Cursor client_ ABSL_GUARDED_BY(mutex_), server_ ABSL_GUARDED_BY(mutex_);
  size_t preface_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // number received
  bool acknowledged_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<uint32_t, uint32_t> open_ ABSL_GUARDED_BY(mutex_);  // stream: header bytes
  uint64_t open_header_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t last_stream_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t streams_ ABSL_GUARDED_BY(mutex_) = 0;  // begun so far
  uint32_t block_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int continuations_ ABSL_GUARDED_BY(mutex_) = 0;
  double canceled_ ABSL_GUARDED_BY(mutex_) = 0;  // Canceled at last_canceled_
  absl::Time last_canceled_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cistern
