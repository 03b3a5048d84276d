#include "common/rpc/connection_acceptor.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/log.h"
#include "common/rpc/watched_tls.h"

namespace cistern {
namespace {

constexpr absl::Duration kSweepEvery = absl::Milliseconds(50);
constexpr absl::Duration kSweepAtCap = absl::Milliseconds(5);
constexpr int kAcceptsARound = 64;                      // before the next sweep
constexpr absl::Duration kIdleWait = absl::Seconds(1);  // without connections to sweep
constexpr absl::Duration kAfterFailure = absl::Milliseconds(100);
// At the cap, a connection that has been idle for this long is replaced by a new one.
constexpr absl::Duration kMayBeReplaced = absl::Seconds(60);
// Memory is given back if the peak was above kMuch and less than a quarter of the peak has been
// held for kLowFor.
constexpr uint64_t kMuch = 128u << 20;
constexpr absl::Duration kLowFor = absl::Seconds(2);

}  // namespace

std::string PeerOfSocket(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  char text[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET) {
    const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &ipv4.sin_addr, text, sizeof(text));
    return absl::StrCat("ipv4:", text, ":", ntohs(ipv4.sin_port));
  }
  const auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(address);
  if (IN6_IS_ADDR_V4MAPPED(&ipv6.sin6_addr)) {
    inet_ntop(AF_INET, &ipv6.sin6_addr.s6_addr[12], text, sizeof(text));
    return absl::StrCat("ipv4:", text, ":", ntohs(ipv6.sin6_port));
  }
  inet_ntop(AF_INET6, &ipv6.sin6_addr, text, sizeof(text));
  return absl::StrCat("ipv6:%5B", text, "%5D:", ntohs(ipv6.sin6_port));
}

ConnectionAcceptor::ConnectionAcceptor(ListeningSockets sockets, AcceptorOptions options,
                                       ConnectionBook* book)
    : sockets_(std::move(sockets)),
      options_(std::move(options)),
      book_(book),
      wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_(std::make_unique<ThreadPool>(1)) {
  thread_->Run([this] { Work(); });
}

void ConnectionAcceptor::Stop() {
  if (thread_ == nullptr) return;
  eventfd_write(wake_fd_, 1);
  thread_ = nullptr;  // joins
  sockets_.Close();
  if (wake_fd_ >= 0) close(wake_fd_);
}

void ConnectionAcceptor::Work() {
  bool listen = true;
  while (true) {
    const absl::Duration most =
        listen ? (book_->size() > 0 ? kSweepEvery : kIdleWait) : kAfterFailure;
    if (!Wait(most, listen)) return;
    listen = true;
    for (const int listener : sockets_.fds()) listen = AcceptSome(listener) && listen;
    Sweep();
  }
}

bool ConnectionAcceptor::Wait(absl::Duration most, bool listen) {
  std::vector<pollfd> waited = {{wake_fd_, POLLIN, 0}};
  if (listen) {
    for (const int listener : sockets_.fds()) waited.push_back({listener, POLLIN, 0});
  }
  poll(waited.data(), waited.size(), static_cast<int>(absl::ToInt64Milliseconds(most)));
  return waited[0].revents == 0;
}

bool ConnectionAcceptor::AcceptSome(int listener) {
  for (int i = 0; i < kAcceptsARound; ++i) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      Admit(fd);
      continue;
    }
    switch (errno) {
      case EAGAIN:
        return true;
      case ECONNABORTED:  // the connection is already gone
      case EPROTO:
      case EINTR:
        continue;
      default:  // EMFILE, ENFILE, ENOBUFS, ENOMEM
        failure_ = errno;
        failed_.Count();
        return false;
    }
  }
  return true;
}

void ConnectionAcceptor::Admit(int fd) {
  if (book_->size() >= static_cast<size_t>(options_.max_connections)) {
    if (absl::Now() - last_sweep_ > kSweepAtCap) Sweep();  // some may have been closed
    if (book_->size() >= static_cast<size_t>(options_.max_connections) &&
        !book_->EndIdle(kMayBeReplaced)) {
      refused_.Count();
      close(fd);
      return;
    }
  }
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  const std::string peer = PeerOfSocket(fd);
  if (peer.empty()) {
    close(fd);
    return;
  }
  const TlsWatchScope watched(book_->Add(fd, peer));
  options_.hand_over(fd);
}

void ConnectionAcceptor::ReleaseMemory(uint64_t held_bytes, absl::Time now) {
  peak_bytes_ = std::max(peak_bytes_, held_bytes);
  if (peak_bytes_ < kMuch || held_bytes > peak_bytes_ / 4) {
    low_since_ = absl::InfiniteFuture();
  } else if (low_since_ == absl::InfiniteFuture()) {
    low_since_ = now;
  } else if (now - low_since_ >= kLowFor) {
    options_.give_memory_back();
    peak_bytes_ = held_bytes;
  }
}

void ConnectionAcceptor::Sweep() {
  const absl::Time now = absl::Now();
  last_sweep_ = now;
  const ConnectionBook::Swept swept = book_->Sweep();
  if (swept.ended > 0) {
    ended_.Count(static_cast<uint64_t>(swept.ended));
    last_ended_ = swept;
  }
  if (swept.excessive > 0) {
    excessive_.Count(static_cast<uint64_t>(swept.excessive));
    last_excessive_ = swept.last_excessive;
  }
  if (swept.without_call > 0) {
    without_call_.Count(static_cast<uint64_t>(swept.without_call));
    last_without_call_ = swept.last_without_call;
  }
  ReleaseMemory(swept.held_bytes, now);
  if (const uint64_t count = refused_.Due(now); count > 0) {
    LogWarning(absl::StrCat(count, " connections refused: the limit of ", options_.max_connections,
                            " open connections is reached; raise max_connections if these "
                            "clients are legitimate"));
  }
  if (const uint64_t count = failed_.Due(now); count > 0) {
    LogWarning(absl::StrCat("connections are waiting: accept failed ", count, " times (",
                            std::strerror(failure_),
                            "); retrying every 100 ms; raise ulimit -n or lower max_connections"));
  }
  if (const uint64_t count = ended_.Due(now); count > 0) {
    LogWarning(absl::StrCat(
        count,
        " connections closed: they stalled in the middle of a message, or all connections together "
        "held more memory than rpc_memory_mb=",
        book_->limit_bytes() >> 20, "; the last was ", last_ended_.last_ended, ", with ",
        last_ended_.ended_bytes >> 20, " MiB; if it is a worker, raise rpc_memory_mb"));
  }
  if (const uint64_t count = excessive_.Due(now); count > 0) {
    LogWarning(absl::StrCat(
        count, " connections closed for what no gRPC client does; the last was ", last_excessive_));
  }
  if (const uint64_t count = without_call_.Due(now); count > 0) {
    LogInfo(absl::StrCat(count, " connections ended without a call, the last of ",
                         last_without_call_,
                         ": a health check, a scan, or a caller whose certificate was refused"));
  }
}

}  // namespace cistern
