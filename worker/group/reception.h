// Where the processes of a group are let in: reads the hellos (hello.h) of all connections to a
// port side by side, and keeps those that show the group's secret.
//
// All others come from other programs, other runs, or people who look for a way in. They are
// dropped without an answer and counted; they are no error of the group, and nobody waits for them.
#pragma once

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/group/hello.h"
#include "worker/group/socket.h"

namespace cistern {

// Threads: one.
class Reception {
 public:
  // The longest that a connection may take for its hello, and the most that may be at it: the
  // oldest makes room.
  static constexpr std::chrono::seconds kHelloTime{5};
  static constexpr size_t kMaxWaiting = 256;

  struct Guest {
    Hello hello;
    Socket socket;
  };

  // listener: outlives this.
  Reception(const Listener& listener, uint64_t secret,
            std::chrono::milliseconds hello_time = kHelloTime)
      : listener_(listener), secret_(secret), hello_time_(hello_time) {}

  // The next connection that shows the secret; whose rank and size are not checked. May be called
  // again after kDeadlineExceeded: hellos that were begun are kept.
  absl::StatusOr<Guest> Next(Deadline deadline);

  // "dropped 12 connections that are not of this run: 2 silent, 10 with another secret";
  // empty if there were none.
  std::string Dropped() const;

 private:
  enum Reason { kSilent, kClosed, kOtherProgram, kOtherSecret, kMadeRoom, kReasons };
  // A connection that has not said all of its hello.
  struct Waiting {
    Socket socket;
    Deadline until;
    std::string bytes;
  };

  // Until something can be read, the deadline, or the end of somebody's time.
  absl::Status Wait(Deadline deadline);
  // Reads what has come from waiting_[i]; whether that completes a right hello.
  bool Read(size_t i, Guest* guest);
  void AcceptSome();
  void DropSilent();
  void Drop(size_t i, Reason reason);

  const Listener& listener_;
  const uint64_t secret_;
  const std::chrono::milliseconds hello_time_;
  std::vector<Waiting> waiting_;  // oldest first
  std::array<uint64_t, kReasons> dropped_{};
  bool has_warned_ = false;  // that descriptors ran out
  Deadline no_accept_before_{};
};

}  // namespace cistern
