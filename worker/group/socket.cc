#include "worker/group/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/match.h"

namespace cistern::group {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBacklog = 1024;
constexpr std::chrono::milliseconds kRetry{20};  // between two attempts to connect

absl::Status SystemError(const std::string& what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

absl::Status TransferError(const std::string& what) {
  if (errno != EKEYREJECTED) return SystemError(what);
  return WithOptions(
      WithFix(absl::PermissionDeniedError("the other worker refused this worker's certificate"),
              "use certificates of one authority, with the role worker, for all workers of a run"),
      {"certs.issue.role=worker"});
}

// Disables Nagle's algorithm and blocking calls, and detects dead hosts (lost power or network)
// within one minute, by three keepalive probes; the system's defaults take two hours.
void Prepare(int descriptor) {
  const int on = 1, idle_s = 30, interval_s = 10, probes = 3;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
  setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
  setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
}

absl::Status WaitFor(int descriptor, short events, Deadline deadline) {
  for (;;) {
    pollfd wait{descriptor, events, 0};
    const int ready = poll(&wait, 1, MillisecondsUntil(deadline));
    if (ready > 0) return absl::OkStatus();
    if (ready == 0) return absl::DeadlineExceededError("no answer within the deadline");
    if (errno != EINTR) return SystemError("poll");
  }
}

// One attempt at one address of the host name.
absl::StatusOr<Socket> TryConnect(const addrinfo& to, Deadline deadline) {
  Socket socket(::socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return SystemError("socket");
  Prepare(socket.descriptor());
  if (connect(socket.descriptor(), to.ai_addr, to.ai_addrlen) == 0) return socket;
  if (errno != EINPROGRESS) return SystemError("connect");
  CISTERN_RETURN_IF_ERROR(WaitFor(socket.descriptor(), POLLOUT, deadline));
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &size);
  errno = error;
  if (error != 0) return SystemError("connect");
  return socket;
}

}  // namespace

Socket::~Socket() {
  channel_ = nullptr;
  if (is_open()) close(descriptor_);
}

absl::Status Socket::BeginTls(const SecureContext* context, TlsSide side) {
  if (context == nullptr) return absl::OkStatus();
  CISTERN_ASSIGN_OR_RETURN(channel_, context->Begin(descriptor_, side));
  return absl::OkStatus();
}

absl::Status Socket::Handshake(short* events) const {
  return channel_ == nullptr ? absl::OkStatus() : channel_->Handshake(events);
}

ssize_t Socket::Send(const void* bytes, size_t count, bool more) const {
  if (channel_ != nullptr) return channel_->Send(bytes, count, more);
  return send(descriptor_, bytes, count, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
}

ssize_t Socket::Receive(void* bytes, size_t count) const {
  if (channel_ != nullptr) return channel_->Receive(bytes, count);
  return recv(descriptor_, bytes, count, 0);
}

absl::Status CompleteHandshake(const Socket& socket, Deadline deadline) {
  for (;;) {
    short events = 0;
    const absl::Status done = socket.Handshake(&events);
    if (!absl::IsUnavailable(done) || events == 0) return done;
    CISTERN_RETURN_IF_ERROR(WaitFor(socket.descriptor(), events, deadline));
  }
}

int MillisecondsUntil(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

absl::StatusOr<Listener> Listener::Open(uint16_t port, absl::string_view host) {
  Listener listener;
  sockaddr_in6 v6{};  // accepts IPv6 and IPv4
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  sockaddr_in v4{};  // where the machine has no IPv6
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  const bool only_loopback = IsLoopback(host);
  const bool is_v4_loopback = only_loopback && !absl::StrContains(host, ":");
  if (only_loopback) v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (only_loopback) v6.sin6_addr = in6addr_loopback;
  if (!is_v4_loopback) listener.socket_ = Socket(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool has_v6 = listener.socket_.is_open();
  if (!has_v6) listener.socket_ = Socket(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int descriptor = listener.socket_.descriptor(), on = 1, off = 0;
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  const auto* address =
      has_v6 ? reinterpret_cast<sockaddr*>(&v6) : reinterpret_cast<sockaddr*>(&v4);
  socklen_t size = has_v6 ? sizeof(v6) : sizeof(v4);
  if (bind(descriptor, address, size) != 0 || listen(descriptor, kBacklog) != 0) {
    const bool is_taken = errno == EADDRINUSE;
    const absl::Status failed = SystemError(absl::StrCat("listening on port ", port));
    if (!is_taken) return failed;
    return absl::Status(failed.code(),
                        absl::StrCat(failed.message(), ": another process, perhaps another worker ",
                                     "of this rank, uses it; end it, or choose another port"));
  }
  Prepare(descriptor);
  sockaddr_storage bound{};
  size = sizeof(bound);
  getsockname(descriptor, reinterpret_cast<sockaddr*>(&bound), &size);
  listener.port_ = ntohs(has_v6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
  return listener;
}

absl::StatusOr<Socket> Listener::Accept(Deadline deadline) const {
  for (;;) {
    CISTERN_RETURN_IF_ERROR(WaitFor(socket_.descriptor(), POLLIN, deadline));
    Socket accepted(accept4(socket_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
    if (accepted.is_open()) {
      Prepare(accepted.descriptor());
      return accepted;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "a connection to port ", port_, " cannot be accepted: ", std::strerror(errno),
          "; check ulimit -n, and which clients connect there"));
    }
  }
}

absl::StatusOr<Socket> ConnectTo(const HostPort& address, Deadline deadline) {
  const std::string where = HostPortText(address.host, address.port);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  absl::Status last;
  for (;;) {
    addrinfo* found = nullptr;
    const int error =
        getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
    if (error != 0) last = absl::UnavailableError(gai_strerror(error));
    for (const addrinfo* to = found; error == 0 && to != nullptr; to = to->ai_next) {
      absl::StatusOr<Socket> socket = TryConnect(*to, deadline);
      if (socket.ok()) return socket;
      last = socket.status();
    }
    if (Clock::now() + kRetry >= deadline) break;
    poll(nullptr, 0, static_cast<int>(kRetry.count()));
  }
  return absl::UnavailableError(
      absl::StrCat(where, " could not be reached before the deadline: ", last.message()));
}

std::string HostOf(const Socket& socket) {
  sockaddr_storage peer{};
  socklen_t size = sizeof(peer);
  char host[NI_MAXHOST] = "";
  getpeername(socket.descriptor(), reinterpret_cast<sockaddr*>(&peer), &size);
  getnameinfo(reinterpret_cast<sockaddr*>(&peer), size, host, sizeof(host), nullptr, 0,
              NI_NUMERICHOST);
  const std::string text = host, mapped = "::ffff:";  // IPv4 address mapped into IPv6
  return text.rfind(mapped, 0) == 0 ? text.substr(mapped.size()) : text;
}

absl::Status SendAll(const Socket& socket, const void* bytes, size_t count, Deadline deadline) {
  const char* at = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t sent = socket.Send(at, count);
    if (sent > 0) {
      at += sent;
      count -= static_cast<size_t>(sent);
    } else if (errno == EAGAIN) {
      CISTERN_RETURN_IF_ERROR(WaitFor(socket.descriptor(), POLLOUT, deadline));
    } else if (errno != EINTR) {
      return TransferError("send");
    }
  }
  while (socket.Flush() != 0) {
    if (errno != EAGAIN) return TransferError("send");
    CISTERN_RETURN_IF_ERROR(WaitFor(socket.descriptor(), POLLOUT, deadline));
  }
  return absl::OkStatus();
}

absl::Status ReceiveAll(const Socket& socket, void* bytes, size_t count, Deadline deadline) {
  char* at = static_cast<char*>(bytes);
  while (count > 0) {
    const ssize_t received = socket.Receive(at, count);
    if (received > 0) {
      at += received;
      count -= static_cast<size_t>(received);
    } else if (received == 0) {
      return absl::UnavailableError("the connection was closed");
    } else if (errno == EAGAIN) {
      CISTERN_RETURN_IF_ERROR(WaitFor(socket.descriptor(), POLLIN, deadline));
    } else if (errno != EINTR) {
      return TransferError("receive");
    }
  }
  return absl::OkStatus();
}

bool HasEnded(const Socket& socket) {
  char byte = 0;
  const ssize_t received = recv(socket.descriptor(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return received == 0 || (received < 0 && errno != EAGAIN && errno != EINTR);
}

}  // namespace cistern::group
