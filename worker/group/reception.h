// Admission to a process group: reads the hellos (hello.h) of all connections to a port
// concurrently, after a TLS handshake if the group has certificates, and keeps those that present
// the group secret.
//
// All other connections come from other programs, other runs or attackers. The reception drops them
// without an answer and counts them. They are not an error of the group and do not delay it.
#pragma once

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/group/hello.h"
#include "worker/group/socket.h"

namespace cistern::group {

// Threads: one.
class Reception {
 public:
  // The time limit of a hello, and the number of connections that may be sending one: the oldest is
  // dropped to make room.
  static constexpr std::chrono::seconds kHelloTime{5};
  static constexpr size_t kMaxWaiting = 256;

  struct Guest {
    Hello hello;
    Socket socket;
  };

  // listener: must outlive this object.
  // tls: for connections to speak it; null: plain text. Outlives this object.
  Reception(const Listener& listener, uint64_t secret,
            std::chrono::milliseconds hello_time = kHelloTime, const SecureContext* tls = nullptr)
      : listener_(listener), secret_(secret), hello_time_(hello_time), tls_(tls) {}

  // The next connection that presents the secret. Its rank and size are not checked. May be called
  // again after kDeadlineExceeded: partial hellos are kept.
  absl::StatusOr<Guest> Next(Deadline deadline);

  // "dropped 12 connections that are not of this run: 2 silent, 10 with another secret";
  // empty if none were dropped.
  std::string Dropped() const;

 private:
  enum Reason { kSilent, kClosed, kOtherProgram, kOtherSecret, kNotAdmitted, kMadeRoom, kReasons };
  // A connection whose hello is incomplete.
  struct Waiting {
    Socket socket;
    Deadline until;
    std::string bytes;
    bool is_secure = false;  // the handshake is complete, or there is none
    short events = 0;        // what it waits for
  };

  // Waits for bytes to read, the deadline, or the end of a connection's time.
  absl::Status Wait(Deadline deadline);
  // Continues the handshake of waiting_[i]; true if it is complete.
  bool Secure(size_t i);
  // Reads the available bytes of waiting_[i]; true if they complete a correct hello.
  bool Read(size_t i, Guest* guest);
  void AcceptSome();
  void DropSilent();
  void Drop(size_t i, Reason reason);

  const Listener& listener_;
  const uint64_t secret_;
  const std::chrono::milliseconds hello_time_;
  const SecureContext* const tls_;
  std::vector<Waiting> waiting_;  // oldest first
  std::array<uint64_t, kReasons> dropped_{};
  bool has_warned_ = false;  // about exhausted descriptors
  Deadline no_accept_before_{};
};

}  // namespace cistern::group
