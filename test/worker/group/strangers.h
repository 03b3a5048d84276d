// Raw connections of a test to a port.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>

#include "worker/group/hello.h"
#include "worker/group/socket.h"

namespace cistern::group {

inline Deadline In(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

// A connection that has sent `bytes` and stays open.
inline Socket StrangerAt(uint16_t port, const std::string& bytes) {
  absl::StatusOr<Socket> socket =
      ConnectTo({"127.0.0.1", port}, In(std::chrono::milliseconds(60000)));
  EXPECT_TRUE(socket.ok()) << socket.status();
  EXPECT_TRUE(
      SendAll(*socket, bytes.data(), bytes.size(), In(std::chrono::milliseconds(60000))).ok());
  return *std::move(socket);
}

// The same, with the sending side closed; it can still receive.
inline Socket SilencedStrangerAt(uint16_t port, const std::string& bytes) {
  Socket socket = StrangerAt(port, bytes);
  EXPECT_EQ(shutdown(socket.descriptor(), SHUT_WR), 0);
  return socket;
}

}  // namespace cistern::group
