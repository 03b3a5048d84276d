#include "worker/group/socket.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "common/base/host_address.h"

namespace cistern::group {
namespace {

int Option(const Socket& socket, int level, int name) {
  int value = -1;
  socklen_t size = sizeof(value);
  EXPECT_EQ(getsockopt(socket.descriptor(), level, name, &value, &size), 0);
  return value;
}

TEST(Socket, ProbesAnIdleConnectionWithinAMinute) {
  const absl::StatusOr<Listener> listener = Listener::Open(0, "127.0.0.1");
  ASSERT_TRUE(listener.ok()) << listener.status();
  const Deadline deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const absl::StatusOr<Socket> here = ConnectTo({"127.0.0.1", listener->port()}, deadline);
  ASSERT_TRUE(here.ok()) << here.status();
  const absl::StatusOr<Socket> there = listener->Accept(deadline);
  ASSERT_TRUE(there.ok()) << there.status();
  for (const Socket* side : {&*here, &*there}) {
    EXPECT_NE(Option(*side, SOL_SOCKET, SO_KEEPALIVE), 0);
    const int seconds =
        Option(*side, IPPROTO_TCP, TCP_KEEPIDLE) +
        Option(*side, IPPROTO_TCP, TCP_KEEPINTVL) * Option(*side, IPPROTO_TCP, TCP_KEEPCNT);
    EXPECT_LE(seconds, 60);
  }
}

TEST(Listener, ListensOnTheLoopbackThatTheOthersName) {
  for (const char* host : {"127.0.0.1", "localhost", "::1"}) {
    if (!WhyUnknown(host).empty()) continue;  // a bare system without /etc/hosts
    const absl::StatusOr<Listener> listener = Listener::Open(0, host);
    if (!listener.ok() && std::string(host) == "::1") GTEST_SKIP() << listener.status();
    ASSERT_TRUE(listener.ok()) << listener.status();
    const Deadline deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    const absl::StatusOr<Socket> here = ConnectTo({host, listener->port()}, deadline);
    EXPECT_TRUE(here.ok()) << host << ": " << here.status();
    sockaddr_storage bound = {};
    socklen_t size = sizeof(bound);
    ASSERT_EQ(getsockname(listener->descriptor(), reinterpret_cast<sockaddr*>(&bound), &size), 0);
    EXPECT_EQ(bound.ss_family, std::string(host) == "::1" ? AF_INET6 : AF_INET);
  }
}

}  // namespace
}  // namespace cistern::group
