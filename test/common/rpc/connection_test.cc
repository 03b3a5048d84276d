// Hostile clients of a server: they connect too often, send too much, or send nothing.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <vector>

#include "common/rpc/connection_acceptor.h"
#include "common/rpc/connection_book.h"
#include "common/rpc/descriptor_limit.h"
#include "common/rpc/watched_sockets.h"
#include "test/common/rpc/loopback.h"

namespace cistern {
namespace {

using testing::HasSubstr;

// Connects to `port` of this machine; -1: the process has no descriptor left.
int Connect(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

// Waits until the other side has closed or reset the connection.
void AwaitClosed(int fd) {
  char bytes[4096];
  while (recv(fd, bytes, sizeof(bytes), 0) > 0) {
  }
}

// A connected pair of sockets, as an acceptor gets it.
struct Pair {
  Pair() {
    absl::StatusOr<ListeningSockets> sockets = ListeningSockets::Open("127.0.0.1", 0);
    EXPECT_TRUE(sockets.ok()) << sockets.status();
    client = Connect(sockets->port());
    while (server < 0) server = accept(sockets->fds()[0], nullptr, nullptr);
  }
  ~Pair() {
    close(client);
    if (server >= 0) close(server);
  }
  // Sends `bytes` bytes, which the server reads.
  void Send(size_t bytes) {
    std::string sent(64 << 10, 'x');
    for (size_t i = 0; i < bytes; i += sent.size()) {
      ASSERT_EQ(send(client, sent.data(), sent.size(), 0), static_cast<ssize_t>(sent.size()));
      ASSERT_EQ(recv(server, sent.data(), sent.size(), MSG_WAITALL),
                static_cast<ssize_t>(sent.size()));
    }
  }
  int client = -1, server = -1;
};

TEST(DescriptorLimit, LeavesDescriptorsForFiles) {
  EXPECT_EQ(*ConnectionLimit(1024, 0), 768);
  EXPECT_EQ(*ConnectionLimit(2000, 0), 1500);
  EXPECT_EQ(*ConnectionLimit(1'000'000, 0), 4096);
  EXPECT_EQ(*ConnectionLimit(100, 0), 50);
  EXPECT_EQ(*ConnectionLimit(1024, 500), 500);
  EXPECT_THAT(std::string(ConnectionLimit(1024, 800).status().message()),
              HasSubstr("max_connections=800 is above 768"));
}

TEST(ConnectionBook, CountsBytesReadButNotDelivered) {
  ConnectionBook book(1 << 30);
  Pair pair;
  const std::string peer = PeerOfSocket(pair.server);
  EXPECT_THAT(peer, HasSubstr("ipv4:127.0.0.1:"));
  book.Add(pair.server, peer);
  EXPECT_EQ(book.Sweep().held_bytes, 0u);
  pair.Send(1 << 20);
  EXPECT_EQ(book.Sweep().held_bytes, 4u << 20);  // the smallest frames take four times their size
  {
    const auto call = book.Begin(peer, 1 << 20, 1 << 20);
    ASSERT_TRUE(call.ok());
    EXPECT_EQ(book.Sweep().held_bytes, (1u << 20) + (16u << 10));
  }
  EXPECT_EQ(book.Sweep().held_bytes, 0u);
}

TEST(ConnectionBook, ClosesTheConnectionThatHoldsTheMostMemory) {
  ConnectionBook book(16 << 20);
  Pair small, large;
  book.Add(small.server, PeerOfSocket(small.server));
  const std::string peer = PeerOfSocket(large.server);
  book.Add(large.server, peer);
  small.Send(1 << 20);
  large.Send(2 << 20);
  EXPECT_EQ(book.Sweep().ended, 0);
  large.Send(2 << 20);
  const ConnectionBook::Swept swept = book.Sweep();
  EXPECT_EQ(swept.ended, 1);
  EXPECT_EQ(swept.last_ended, peer);
  EXPECT_EQ(swept.ended_bytes, 16u << 20);
  AwaitClosed(large.client);
  small.Send(64 << 10);  // still open
  EXPECT_EQ(book.Sweep().ended, 0);
}

TEST(ConnectionBook, ClosesAConnectionThatStallsWithinAMessage) {
  ConnectionBook book(1 << 30, /*stall=*/absl::ZeroDuration());
  Pair pair;
  book.Add(pair.server, PeerOfSocket(pair.server));
  EXPECT_EQ(book.Sweep().ended, 0);
  pair.Send(2 << 20);
  EXPECT_EQ(book.Sweep().ended, 1);
  AwaitClosed(pair.client);
}

TEST(ConnectionBook, RefusesCallsAboveTheLimitAndAfterClose) {
  ConnectionBook book(1 << 20);
  EXPECT_EQ(book.Begin("x", 0, 2 << 20).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(book.Begin("x", 0, 1 << 19).ok());
  book.Close(absl::InfiniteDuration());
  EXPECT_THAT(std::string(book.Begin("x", 0, 0).status().message()), HasSubstr("stopping"));
}

TEST(ConnectionBook, ForgetsClosedConnections) {
  ConnectionBook book(1 << 20);
  Pair pair;
  book.Add(pair.server, PeerOfSocket(pair.server));
  EXPECT_EQ(book.size(), 1u);
  close(pair.server);
  pair.server = socket(AF_INET, SOCK_STREAM, 0);  // the same number, another socket
  book.Sweep();
  EXPECT_EQ(book.size(), 0u);
}

TEST(ConnectionBook, CountsConnectionsThatEndWithoutACall) {
  ConnectionBook book(1 << 20);
  Pair silent, called;
  book.Add(silent.server, PeerOfSocket(silent.server));
  book.Add(called.server, PeerOfSocket(called.server));
  EXPECT_TRUE(book.Begin(PeerOfSocket(called.server), 0, 100).ok());
  EXPECT_EQ(book.figures().open, 2u);
  const std::string peer = PeerOfSocket(silent.server);
  for (int* const fd : {&silent.server, &called.server}) {
    close(*fd);
    *fd = -1;
  }
  const ConnectionBook::Swept swept = book.Sweep();
  EXPECT_EQ(swept.without_call, 1);
  EXPECT_EQ(swept.last_without_call, peer);
  EXPECT_EQ(book.figures().accepted, 2u);
  EXPECT_EQ(book.figures().open, 0u);
  EXPECT_EQ(book.figures().without_call, 1u);
  EXPECT_EQ(book.figures().held_bytes, 0u);
}

// Memory of this process in bytes, and its peak since the last ResetPeak.
uint64_t PeakBytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  uint64_t kb = 0;
  while (status >> word) {
    if (word == "VmHWM:") status >> kb;
  }
  return kb << 10;
}
void ResetPeak() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

// Sends HTTP/2 frames until the server closes; returns the number of bytes sent, at most `most`.
size_t Flood(int port, std::string bytes, const std::string& piece, size_t most) {
  const int fd = Connect(port);
  size_t sent = 0;
  while (sent < most) {
    char answer[4096];
    while (recv(fd, answer, sizeof(answer), MSG_DONTWAIT) > 0) {
    }
    const ssize_t size = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (size < 0) break;
    sent += static_cast<size_t>(size);
    bytes.erase(0, static_cast<size_t>(size));
    if (bytes.empty()) bytes = piece;
  }
  close(fd);
  return sent;
}

TEST(ServerHost, ClosesConnectionsWhoseHeadersDoNotEnd) {
  Loopback loopback;
  const std::string settings("\0\0\0\4\0\0\0\0\0", 9), acknowledged("\0\0\0\4\1\0\0\0\0", 9);
  const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings;
  // HEADERS without END_HEADERS that puts "x: y" into the table, then CONTINUATIONs of 16,000
  // one-byte references to it.
  const std::string open("\0\0\5\1\0\0\0\0\1\x40\1x\1y", 14);
  const std::string more = std::string("\0\x3e\x80\x9\0\0\0\0\1", 9) + std::string(16000, '\xbe');
  for (const std::string& first : {preface, preface + acknowledged}) {
    ResetPeak();
    const uint64_t before = PeakBytes();
    EXPECT_LT(Flood(loopback.host->port(), first + open, more, 64 << 20), size_t{32} << 20);
    EXPECT_LT(PeakBytes(), before + (64 << 20));
  }
  v1::HelloReply reply;
  EXPECT_EQ(loopback.server->Hello({}, &reply), absl::OkStatus());
}

TEST(WatchedSockets, DoNotWatchTheNextSocketOfTheSameNumber) {
  auto watch = std::make_shared<StreamWatch>(64);
  Pair first;
  const int number = first.server;
  WatchSocket(number, watch);
  close(number);
  first.server = -1;
  Pair second;
  ASSERT_TRUE(second.server == number || second.client == number);
  const int other = second.server == number ? second.client : second.server;
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(send(other, "not HTTP/2", 10, 0), 10);
    char bytes[10];
    iovec piece = {bytes, sizeof(bytes)};
    msghdr message = {};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    EXPECT_EQ(recvmsg(number, &message, 0), 10);
  }
}

TEST(WatchedSockets, CannotBeReadOnceTheWatchFails) {
  auto watch = std::make_shared<StreamWatch>(64);
  Pair pair;
  WatchSocket(pair.server, watch);
  ASSERT_EQ(send(pair.client, "not HTTP/2", 10, 0), 10);
  char bytes[10];
  iovec piece = {bytes, sizeof(bytes)};
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  EXPECT_EQ(recvmsg(pair.server, &message, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
  UnwatchSocket(pair.server, watch.get());
}

TEST(ServerHost, AcceptsAgainAfterTheProcessRanOutOfDescriptors) {
  Loopback loopback;
  v1::HelloReply reply;
  ASSERT_EQ(loopback.server->Hello({}, &reply), absl::OkStatus());
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = dup(0);
  close(next);
  const rlimit tight = {static_cast<rlim_t>(next) + 20, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
  std::vector<int> fds;
  for (int fd = Connect(loopback.host->port()); fd >= 0; fd = Connect(loopback.host->port())) {
    fds.push_back(fd);
  }
  EXPECT_GE(fds.size(), 9u);
  for (const int fd : fds) close(fd);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  const auto fresh = RemoteServer::Create(absl::StrCat("127.0.0.1:", loopback.host->port()), {});
  EXPECT_EQ(fresh->Hello({}, &reply), absl::OkStatus());
}

TEST(ServerHost, RefusesConnectionsOnlyAboveTheLimit) {
  HostOptions options;
  options.max_connections = 2;
  Loopback loopback({}, options);
  v1::HelloReply reply;
  ASSERT_EQ(loopback.server->Hello({}, &reply), absl::OkStatus());
  const int second = Connect(loopback.host->port()), third = Connect(loopback.host->port());
  AwaitClosed(third);
  EXPECT_EQ(loopback.server->Hello({}, &reply), absl::OkStatus());
  close(second);
  close(third);
  // Its place becomes free once the server has noticed; clients retry.
  const auto fresh = RemoteServer::Create(absl::StrCat("127.0.0.1:", loopback.host->port()), {});
  while (!fresh->Hello({}, &reply).ok()) {
  }
}

}  // namespace
}  // namespace cistern
