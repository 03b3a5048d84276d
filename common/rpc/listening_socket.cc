#include "common/rpc/listening_socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "common/base/host_address.h"

namespace cistern {
namespace {

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

absl::StatusOr<Addresses> LookUp(const std::string& address) {
  const std::string host = WithoutBrackets(address);
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  const int looked_up = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (looked_up == 0) return Addresses(found, &freeaddrinfo);
  if (MayBeHostName(host)) {
    return WithOptions(
        absl::UnavailableError(absl::StrCat(
            "the host name '", address, "' cannot be looked up: ", gai_strerror(looked_up),
            "; correct it, or try again when the name service knows it")),
        {"bind"});
  }
  return WithOptions(absl::InvalidArgumentError(
                         absl::StrCat("'", address, "' is neither an address nor a host name: ",
                                      gai_strerror(looked_up), "; use 127.0.0.1")),
                     {"bind"});
}

void SetPort(sockaddr* address, int port) {
  const auto value = htons(static_cast<uint16_t>(port));
  if (address->sa_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(address)->sin6_port = value;
  } else {
    reinterpret_cast<sockaddr_in*>(address)->sin_port = value;
  }
}

int PortOf(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

bool IsAnyIpv4(const sockaddr* address) {
  return address->sa_family == AF_INET &&
         reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr == htonl(INADDR_ANY);
}

// Returns a socket that listens on `address`, or -1 and sets errno.
int Listen(const sockaddr* address, socklen_t size) {
  const int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  const int on = 1, off = 0;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address->sa_family == AF_INET6) {
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  }
  if (bind(fd, address, size) == 0 && listen(fd, SOMAXCONN) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

// Listens on all addresses of both families through one socket; fails on a machine without IPv6.
int ListenOnAny(int port) {
  sockaddr_in6 any = {};
  any.sin6_family = AF_INET6;
  any.sin6_port = htons(static_cast<uint16_t>(port));
  return Listen(reinterpret_cast<const sockaddr*>(&any), sizeof(any));
}

absl::Status BindError(const std::string& address, int port, int error) {
  const std::string where = absl::StrCat("port ", port, " on ", address);
  if (error == EADDRNOTAVAIL) {
    return WithOptions(absl::UnavailableError(absl::StrCat(
                           where,
                           " cannot be bound: no network interface of this machine has that "
                           "address yet; choose one that `ip address` lists")),
                       {"bind"});
  }
  if (error == EADDRINUSE) {
    return WithOptions(absl::FailedPreconditionError(
                           absl::StrCat(where,
                                        " is taken: another process listens there; stop it, choose "
                                        "another port, or let port 0 pick a free one")),
                       {"port"});
  }
  const char* const fix =
      error == EACCES ? "; ports below 1024 need root or CAP_NET_BIND_SERVICE: choose another port"
                      : "";
  return WithOptions(absl::InvalidArgumentError(
                         absl::StrCat(where, " cannot be bound: ", std::strerror(error), fix)),
                     {error == EACCES ? "port" : "bind"});
}

}  // namespace

absl::Status ListeningSockets::CheckAddress(const std::string& address) {
  return LookUp(address).status();
}

absl::StatusOr<ListeningSockets> ListeningSockets::Open(const std::string& address, int port) {
  CISTERN_ASSIGN_OR_RETURN(const Addresses found, LookUp(address));
  ListeningSockets sockets(port);
  int error = EADDRNOTAVAIL;
  for (addrinfo* next = found.get(); next != nullptr; next = next->ai_next) {
    SetPort(next->ai_addr, sockets.port_);
    int fd = IsAnyIpv4(next->ai_addr) ? ListenOnAny(sockets.port_) : -1;
    if (fd < 0) fd = Listen(next->ai_addr, next->ai_addrlen);
    if (fd < 0) {
      error = errno;
      continue;
    }
    sockets.fds_.push_back(fd);
    if (sockets.port_ == 0) sockets.port_ = PortOf(fd);
  }
  if (sockets.fds_.empty()) return BindError(address, port, error);
  return sockets;
}

void ListeningSockets::Close() {
  for (const int fd : fds_) close(fd);
  fds_.clear();
}

ListeningSockets::~ListeningSockets() {
  Close();
}

}  // namespace cistern
