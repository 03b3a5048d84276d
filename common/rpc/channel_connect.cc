#include "common/rpc/channel_connect.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "absl/time/clock.h"

namespace cistern {
namespace {

using Found = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Found AddressesOf(const std::string& address) {
  const size_t colon = address.rfind(':');
  addrinfo* found = nullptr;
  if (colon != std::string::npos) {
    std::string host = address.substr(0, colon);
    if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
    addrinfo hints = {};
    hints.ai_socktype = SOCK_STREAM;
    const int failed = getaddrinfo(host.c_str(), address.substr(colon + 1).c_str(), &hints, &found);
    if (failed != 0) found = nullptr;
  }
  return Found(found, &freeaddrinfo);
}

// Whether a connection to `to` is accepted before `deadline`.
bool Accepts(const addrinfo& to, absl::Time deadline) {
  const int fd = socket(to.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  bool accepted = connect(fd, to.ai_addr, to.ai_addrlen) == 0;
  if (!accepted && errno == EINPROGRESS) {
    pollfd wait = {fd, POLLOUT, 0};
    const int64_t left_ms = absl::ToInt64Milliseconds(deadline - absl::Now());
    int error = 0;
    socklen_t size = sizeof(error);
    accepted = poll(&wait, 1, static_cast<int>(std::max<int64_t>(left_ms, 0))) == 1 &&
               getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
  }
  close(fd);
  return accepted;
}

bool Accepts(const std::string& address, absl::Time deadline) {
  const Found addresses = AddressesOf(address);
  for (const addrinfo* to = addresses.get(); to != nullptr; to = to->ai_next) {
    if (Accepts(*to, deadline)) return true;
  }
  return false;
}

}  // namespace

void ConnectChannel(grpc::Channel& channel, const std::string& address, absl::Time deadline) {
  // A false failure comes at once. A late one is real: the peer accepts connections but does not
  // answer.
  constexpr absl::Duration kMaxFalseFailures = absl::Seconds(3);
  const absl::Time give_up = std::min(deadline, absl::Now() + kMaxFalseFailures);
  for (;;) {
    const grpc_connectivity_state state = channel.GetState(/*try_to_connect=*/true);
    if (state == GRPC_CHANNEL_READY || state == GRPC_CHANNEL_SHUTDOWN) return;
    const bool failed = state == GRPC_CHANNEL_TRANSIENT_FAILURE;
    if (failed && (absl::Now() >= give_up || !Accepts(address, give_up))) return;
    // A channel that has failed stays so while it tries again: it may never change.
    if (!channel.WaitForStateChange(state, absl::ToChronoTime(failed ? give_up : deadline))) return;
  }
}

}  // namespace cistern
