// A plain socket to a server, and handmade HTTP/2, for bytes that no client library sends.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace cistern {

// A port that nobody listens on now.
int FreePort();

// One TCP connection to 127.0.0.1. The server may close it at any time, so no method returns an
// error; Send returns whether all bytes were sent.
//
// Threads: one at a time.
class Wire {
 public:
  // Not connected if no server accepts within two seconds.
  explicit Wire(int port);
  // To a Unix socket.
  static Wire ToPath(const std::string& path);
  ~Wire();
  Wire(Wire&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  bool connected() const { return fd_ >= 0; }
  // Sends until all is sent, the server closes, or it accepts no bytes for `limit`. If `drain` is
  // set, reads and drops the server's bytes meanwhile (a client that never reads is an attack of
  // its own). True if all was sent.
  bool Send(absl::string_view bytes, absl::Duration limit = absl::Seconds(2), bool drain = true);
  // Reads until the server closes or is silent for `silence`.
  std::string Receive(absl::Duration silence);
  // Closes the sending side; the server's bytes are still read.
  void CloseSending();
  // Closes with RST instead of FIN.
  void Reset();

 private:
  Wire() = default;

  int fd_ = -1;
};

// A minimal HTTP/2 (RFC 9113) encoder.
namespace http2 {

enum Type : uint8_t {
  kData = 0,
  kHeaders = 1,
  kPriority = 2,
  kRstStream = 3,
  kSettings = 4,
  kPushPromise = 5,
  kPing = 6,
  kGoAway = 7,
  kWindowUpdate = 8,
  kContinuation = 9
};
enum Flag : uint8_t { kEndStream = 1, kAck = 1, kEndHeaders = 4 };

// The first bytes of a connection: preface and empty settings.
std::string Preface();
// A frame whose header declares `length`, whatever the size of `payload`.
std::string FrameSaying(uint32_t length, uint8_t type, uint8_t flags, uint32_t stream,
                        absl::string_view payload);
inline std::string FrameOf(uint8_t type, uint8_t flags, uint32_t stream,
                           absl::string_view payload) {
  return FrameSaying(static_cast<uint32_t>(payload.size()), type, flags, stream, payload);
}
std::string Setting(uint16_t id, uint32_t value);  // an entry of a kSettings payload
std::string Number(uint32_t value);                // four bytes, big-endian

// A header in HPACK (RFC 7541), encoded without table and without Huffman.
std::string Header(absl::string_view name, absl::string_view value);
// The headers of a gRPC call to `path`, followed by `more`.
std::string CallHeaders(const std::string& path,
                        const std::vector<std::pair<std::string, std::string>>& more = {});
// The five-byte prefix of a gRPC message.
std::string MessagePrefix(uint32_t length, bool compressed = false);
// HEADERS and DATA of a whole call.
std::string Call(uint32_t stream, const std::string& path, absl::string_view message,
                 bool end_stream = true);

}  // namespace http2
}  // namespace cistern
