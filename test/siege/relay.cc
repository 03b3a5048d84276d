#include "test/siege/relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace cistern {
namespace {

constexpr int kLookMs = 20;  // how soon the destructor is noticed

sockaddr_in LoopbackAt(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

bool SendAll(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

}  // namespace

Relay::Relay(int port) : port_(port), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = LoopbackAt(0);
  socklen_t size = sizeof(address);
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
      listen(listener_, 8) == 0 &&
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    own_port_ = ntohs(address.sin_port);
  }
  thread_ = std::thread([this] { Run(); });
}

Relay::~Relay() {
  stops_ = true;
  thread_.join();
  close(listener_);
}

std::string Relay::address() const {
  return absl::StrCat("127.0.0.1:", own_port_);
}

std::string Relay::sent() const {
  absl::MutexLock lock(&mutex_);
  return sent_;
}

void Relay::Run() {
  while (!stops_) {
    pollfd wait = {listener_, POLLIN, 0};
    if (poll(&wait, 1, kLookMs) <= 0) continue;
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = LoopbackAt(port_);
    if (connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
      Pass(client, server);
    }
    close(server);
    close(client);
  }
}

void Relay::Pass(int client, int server) {
  char bytes[16384];
  while (!stops_) {
    pollfd both[] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
    if (poll(both, 2, kLookMs) <= 0) continue;
    for (const bool up : {true, false}) {
      if (both[up ? 0 : 1].revents == 0) continue;
      const ssize_t got = recv(up ? client : server, bytes, sizeof(bytes), 0);
      if (got <= 0) return;
      const absl::string_view piece(bytes, static_cast<size_t>(got));
      if (up) {
        absl::MutexLock lock(&mutex_);
        absl::StrAppend(&sent_, piece);
      }
      if (!SendAll(up ? server : client, piece)) return;
    }
  }
}

}  // namespace cistern
