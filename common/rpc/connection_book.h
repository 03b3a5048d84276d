// Which connections a server has, and how much memory each of them takes.
//
// gRPC owns a connection's socket once it has it, and holds a message whole before anybody can ask
// how long it is. So memory is counted from outside: what the kernel has received on a socket,
// less what arrived at a handler since, is what gRPC holds of messages and headers that are not
// complete; requests and replies of calls under way are counted by those calls. What all
// connections hold together is bounded: above the bound the one that holds most is ended.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/status.h"

namespace cistern {

// Threads: Begin and calls from any thread; all other methods from the one that accepts.
class ConnectionBook {
  struct Connection;
  struct Totals;

 public:
  // A call under way: its request, and its reply once there is one, count as memory of its
  // connection for as long as this lives. It may outlive the book.
  class Call {
   public:
    Call() = default;
    Call(Call&& other) noexcept { *this = std::move(other); }
    Call& operator=(Call&& other) noexcept;
    ~Call() { End(); }
    // Also holds the `bytes` of the reply.
    void HoldReply(uint64_t bytes);

   private:
    friend class ConnectionBook;
    void End();

    std::shared_ptr<Totals> totals_;
    std::shared_ptr<Connection> connection_;  // null: of a peer that is not known
    uint64_t bytes_ = 0;
  };

  // What a sweep did, for the log.
  struct Swept {
    uint64_t held_bytes = 0;   // by all connections
    int ended = 0;             // connections
    std::string last_ended;    // the peer of the last
    uint64_t ended_bytes = 0;  // what that one held
  };

  // limit_bytes: of all connections together. stall: how long a connection may hold much of
  // messages that do not get complete.
  explicit ConnectionBook(uint64_t limit_bytes, absl::Duration stall = absl::Seconds(10));

  // Enters the connection behind `fd`, before gRPC gets it. peer: as gRPC names it.
  void Add(int fd, const std::string& peer);
  size_t size() const { return connections_.size(); }
  // Forgets connections that gRPC has closed, measures the others, and ends those that have stalled
  // and, while all together hold more than the limit, the one that holds most.
  Swept Sweep();
  // Ends the connection that has had no call for the longest time, at least `idle`. False if
  // there is none.
  bool EndIdle(absl::Duration idle);

  // A call of `peer` whose request of `wire_bytes` has arrived and that will take `bytes`.
  // kUnavailable if all connections together would hold more than the limit, and after Close.
  absl::StatusOr<Call> Begin(const std::string& peer, uint64_t wire_bytes, uint64_t bytes);

  // Refuses calls from now on, and waits at most `most` until none is under way. Any thread.
  void Close(absl::Duration most);

  uint64_t limit_bytes() const { return limit_bytes_; }

 private:
  void Forget(const std::shared_ptr<Connection>& connection);
  static void Measure(Connection* connection, absl::Time now);
  static void End(Connection* connection, Swept* swept);

  const uint64_t limit_bytes_;
  const absl::Duration stall_;
  const std::shared_ptr<Totals> totals_;
  std::vector<std::shared_ptr<Connection>> connections_;  // of the accepting thread

  absl::Mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Connection>> by_peer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cistern
