#include "common/http/metrics_page.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/base/host_address.h"

namespace cistern {
namespace {

constexpr size_t kMaxPageBytes = 16 << 20;

struct Socket {
  explicit Socket(int number) : fd(number) {}
  Socket(Socket&& other) noexcept : fd(std::exchange(other.fd, -1)) {}
  ~Socket() {
    if (fd >= 0) close(fd);
  }
  int fd;
};

absl::Status ErrorOf(int error) {
  return absl::UnavailableError(std::strerror(error));
}

// Waits until `events` can happen on the socket.
absl::Status Await(const Socket& socket, short events, absl::Time end) {
  pollfd wait = {socket.fd, events, 0};
  while (true) {
    const int64_t left = absl::ToInt64Milliseconds(end - absl::Now());
    if (left <= 0) return absl::DeadlineExceededError("no answer within the time limit");
    const int ready = poll(&wait, 1, static_cast<int>(std::min<int64_t>(left, 1'000'000)));
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return ErrorOf(errno);
  }
}

absl::StatusOr<Socket> ConnectTo(int family, const sockaddr* address, socklen_t bytes,
                                 absl::Time end) {
  Socket made(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (made.fd < 0) return ErrorOf(errno);
  if (connect(made.fd, address, bytes) == 0) return made;
  if (errno != EINPROGRESS) return ErrorOf(errno);
  CISTERN_RETURN_IF_ERROR(Await(made, POLLOUT, end));
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(made.fd, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return ErrorOf(error);
  return made;
}

absl::StatusOr<Socket> ConnectToPath(const std::string& path, absl::Time end) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError("the path is longer than that of a socket may be");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return ConnectTo(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof(address), end);
}

absl::StatusOr<Socket> ConnectToHost(const HostPort& host, absl::Time end) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(host.host.c_str(), std::to_string(host.port).c_str(), &hints, &found);
  if (error != 0) return absl::UnavailableError(gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  absl::Status failed = absl::UnavailableError("the name has no address");
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    absl::StatusOr<Socket> made = ConnectTo(at->ai_family, at->ai_addr, at->ai_addrlen, end);
    if (made.ok()) return made;
    failed = made.status();
  }
  return failed;
}

absl::StatusOr<Socket> Connect(const std::string& place, absl::Time end) {
  absl::string_view address = place;
  absl::ConsumePrefix(&address, "http://");
  absl::ConsumeSuffix(&address, "/metrics");
  if (absl::StrContains(address, '/')) return ConnectToPath(std::string(address), end);
  CISTERN_ASSIGN_OR_RETURN(const HostPort host, ParseHostPort(address));
  return ConnectToHost(host, end);
}

absl::Status Send(const Socket& socket, absl::string_view bytes, absl::Time end) {
  while (!bytes.empty()) {
    CISTERN_RETURN_IF_ERROR(Await(socket, POLLOUT, end));
    const ssize_t sent = send(socket.fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (errno != EAGAIN && errno != EINTR) {
      return ErrorOf(errno);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReceiveAll(const Socket& socket, absl::Time end) {
  std::string text;
  while (true) {
    CISTERN_RETURN_IF_ERROR(Await(socket, POLLIN, end));
    char piece[16384];
    const ssize_t got = recv(socket.fd, piece, sizeof(piece), 0);
    if (got == 0) return text;
    if (got < 0 && errno != EAGAIN && errno != EINTR) return ErrorOf(errno);
    if (got > 0) text.append(piece, static_cast<size_t>(got));
    if (text.size() > kMaxPageBytes) {
      return absl::FailedPreconditionError(
          absl::StrCat("the answer has more than ", kMaxPageBytes, " bytes"));
    }
  }
}

}  // namespace

absl::StatusOr<std::string> ReadMetricsPage(const std::string& place, absl::Duration timeout) {
  const absl::Time end = absl::Now() + timeout;
  CISTERN_ASSIGN_OR_RETURN(const Socket socket, Connect(place, end));
  // HTTP/1.0: the answer ends with the connection, and has no chunks.
  CISTERN_RETURN_IF_ERROR(
      Send(socket, "GET /metrics HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n", end));
  CISTERN_ASSIGN_OR_RETURN(const std::string answer, ReceiveAll(socket, end));
  const size_t body = answer.find("\r\n\r\n");
  const absl::string_view first = absl::string_view(answer).substr(0, answer.find("\r\n"));
  if (body == std::string::npos || !absl::StartsWith(first, "HTTP/1.") ||
      !absl::StrContains(first, " 200 ")) {
    return absl::FailedPreconditionError(
        absl::StrCat("the answer is no page of figures: '", first.substr(0, 80), "'"));
  }
  return answer.substr(body + 4);
}

}  // namespace cistern
