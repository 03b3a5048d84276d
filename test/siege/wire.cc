#include "test/siege/wire.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "test/siege/loopback.h"

namespace cistern {
namespace {

constexpr int kConnectMs = 2000;

// Whether `fd` is ready for `events` within `limit`.
bool Await(int fd, short events, absl::Duration limit) {
  pollfd waiting = {fd, events, 0};
  return poll(&waiting, 1, static_cast<int>(absl::ToInt64Milliseconds(limit))) > 0;
}

// Reads the available bytes; false if the server has closed.
bool Drain(int fd, std::string* kept) {
  char bytes[16384];
  while (true) {
    const ssize_t got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (kept != nullptr) kept->append(bytes, static_cast<size_t>(got));
  }
}

}  // namespace

int FreePort() {
  int port = 0;
  close(ListenOnLoopback(&port));
  return port;
}

Wire::Wire(int port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  if (fd_ < 0) return;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int result = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address));
  int error = result == 0 ? 0 : errno;
  if (error == EINPROGRESS && Await(fd_, POLLOUT, absl::Milliseconds(kConnectMs))) {
    socklen_t size = sizeof(error);
    getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
  }
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (error == 0) return;
  close(fd_);
  fd_ = -1;
}

Wire Wire::ToPath(const std::string& path) {
  Wire wire;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  wire.fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (connect(wire.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    return wire;
  }
  close(wire.fd_);
  wire.fd_ = -1;
  return wire;
}

Wire::~Wire() {
  if (fd_ >= 0) close(fd_);
}

bool Wire::Send(absl::string_view bytes, absl::Duration limit, bool drain) {
  while (fd_ >= 0 && !bytes.empty()) {
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      if (drain && !Drain(fd_, nullptr)) return false;
      if (!Await(fd_, static_cast<short>(POLLOUT | (drain ? POLLIN : 0)), limit)) return false;
    } else if (errno != EINTR) {
      return false;
    }
    if (drain && fd_ >= 0 && !Drain(fd_, nullptr)) return bytes.empty();
  }
  return bytes.empty();
}

std::string Wire::Receive(absl::Duration silence) {
  std::string bytes;
  while (fd_ >= 0 && Await(fd_, POLLIN, silence)) {
    if (!Drain(fd_, &bytes)) break;
  }
  return bytes;
}

void Wire::CloseSending() {
  if (fd_ >= 0) shutdown(fd_, SHUT_WR);
}

void Wire::Reset() {
  if (fd_ < 0) return;
  const linger now = {1, 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  close(fd_);
  fd_ = -1;
}

namespace http2 {
namespace {

void AppendBig(std::string* out, uint64_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) out->push_back(static_cast<char>(value >> (8 * i)));
}

// An HPACK integer with a seven-bit prefix (RFC 7541, 5.1).
void AppendLength(std::string* out, size_t length) {
  if (length < 127) {
    out->push_back(static_cast<char>(length));
    return;
  }
  out->push_back(127);
  for (length -= 127; length >= 128; length /= 128) {
    out->push_back(static_cast<char>(length % 128 + 128));
  }
  out->push_back(static_cast<char>(length));
}

}  // namespace

std::string FrameSaying(uint32_t length, uint8_t type, uint8_t flags, uint32_t stream,
                        absl::string_view payload) {
  std::string frame;
  AppendBig(&frame, length, 3);
  frame.push_back(static_cast<char>(type));
  frame.push_back(static_cast<char>(flags));
  AppendBig(&frame, stream, 4);
  absl::StrAppend(&frame, payload);
  return frame;
}

std::string Preface() {
  return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + FrameOf(kSettings, 0, 0, "");
}

std::string Setting(uint16_t id, uint32_t value) {
  std::string setting;
  AppendBig(&setting, id, 2);
  AppendBig(&setting, value, 4);
  return setting;
}

std::string Number(uint32_t value) {
  std::string bytes;
  AppendBig(&bytes, value, 4);
  return bytes;
}

std::string Header(absl::string_view name, absl::string_view value) {
  std::string header(1, '\0');
  AppendLength(&header, name.size());
  absl::StrAppend(&header, name);
  AppendLength(&header, value.size());
  absl::StrAppend(&header, value);
  return header;
}

std::string CallHeaders(const std::string& path,
                        const std::vector<std::pair<std::string, std::string>>& more) {
  std::string headers = Header(":method", "POST") + Header(":scheme", "http") +
                        Header(":path", path) + Header(":authority", "localhost") +
                        Header("te", "trailers") + Header("content-type", "application/grpc");
  for (const auto& [name, value] : more) headers += Header(name, value);
  return headers;
}

std::string MessagePrefix(uint32_t length, bool compressed) {
  std::string prefix(1, compressed ? '\1' : '\0');
  AppendBig(&prefix, length, 4);
  return prefix;
}

std::string Call(uint32_t stream, const std::string& path, absl::string_view message,
                 bool end_stream) {
  std::string data = MessagePrefix(static_cast<uint32_t>(message.size()));
  absl::StrAppend(&data, message);
  return FrameOf(kHeaders, kEndHeaders, stream, CallHeaders(path)) +
         FrameOf(kData, end_stream ? kEndStream : 0, stream, data);
}

}  // namespace http2
}  // namespace cistern
