// Keeps track of a server's connections and of the memory that each of them holds.
//
// gRPC owns the socket of a connection, and buffers a message completely before anyone can ask for
// its size. Memory is therefore measured from outside: the bytes that the process has read from a
// socket, minus those delivered to a handler, are incomplete messages and headers held by gRPC.
// Requests and replies of calls in progress are counted by those calls; headers and open streams by
// a StreamWatch, if connections are HTTP/2. The total is bounded: above the limit, the
// connection that holds the most memory is closed.
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
#include "common/rpc/stream_watch.h"

namespace cistern {

// Threads: Begin, Close, figures and Call from any thread; all other methods from the accepting
// thread.
class ConnectionBook {
  struct Connection;
  struct Totals;

 public:
  // A call in progress. While it lives, its request and, once there is one, its reply count as
  // memory of its connection. It may outlive the book.
  class Call {
   public:
    Call() = default;
    Call(Call&& other) noexcept { *this = std::move(other); }
    Call& operator=(Call&& other) noexcept;
    ~Call() { End(); }
    // Adds the `bytes` of the reply.
    void HoldReply(uint64_t bytes);

   private:
    friend class ConnectionBook;
    void End();

    std::shared_ptr<Totals> totals_;
    std::shared_ptr<Connection> connection_;  // null: the peer is unknown
    uint64_t bytes_ = 0;
  };

  // The result of a sweep, for the log.
  struct Swept {
    uint64_t held_bytes = 0;        // memory held by all connections
    int ended = 0;                  // number of connections closed
    std::string last_ended;         // the peer of the last one closed
    uint64_t ended_bytes = 0;       // the memory that it held
    int excessive = 0;              // number of connections closed by their watch
    std::string last_excessive;     // the peer of the last one, and why
    int without_call = 0;           // number of connections that ended without a call
    std::string last_without_call;  // the peer of the last one
  };

  // Counts for operators.
  struct Figures {
    uint64_t accepted = 0;      // connections since the start
    uint64_t open = 0;          // of them, now
    uint64_t without_call = 0;  // of them, ended without one: strangers, probes, port scans
    uint64_t held_bytes = 0;    // memory of connections and calls
  };

  // limit_bytes: for all connections together. stall: how long a connection may hold a large
  // incomplete message without progress. max_streams: concurrent streams that the server's settings
  // allow a connection; 0: connections are not HTTP/2, and are not watched. encrypted: their
  // sockets carry TLS, and what they say is shown to their watch by a TlsWatchScope.
  explicit ConnectionBook(uint64_t limit_bytes, absl::Duration stall = absl::Seconds(10),
                          uint32_t max_streams = 0, bool encrypted = false);
  ~ConnectionBook();

  // Adds the connection of socket `fd`, before gRPC gets it. peer: gRPC's name for it. Returns its
  // watch; null: it is not watched.
  std::shared_ptr<StreamWatch> Add(int fd, const std::string& peer);
  size_t size() const { return connections_.size(); }
  // Forgets connections that gRPC has closed and measures the others. Closes stalled ones, and
  // while the total is above the limit, closes the one that holds the most memory.
  Swept Sweep();
  // Closes the connection that has been without a call for the longest time, at least `idle`.
  // Returns false if there is none.
  bool EndIdle(absl::Duration idle);

  // Begins a call of `peer` whose request of `wire_bytes` has arrived and takes `bytes` of memory.
  // kUnavailable if all connections together would hold more than the limit, and after Close.
  absl::StatusOr<Call> Begin(const std::string& peer, uint64_t wire_bytes, uint64_t bytes);

  // Refuses new calls and waits, at most for `most`, until none is in progress. Any thread.
  void Close(absl::Duration most);

  uint64_t limit_bytes() const { return limit_bytes_; }
  Figures figures() const;

 private:
  void Forget(const std::shared_ptr<Connection>& connection, Swept* swept);
  static void Measure(Connection* connection, absl::Time now);
  static void End(Connection* connection, Swept* swept);

  const uint64_t limit_bytes_;
  const absl::Duration stall_;
  const uint32_t max_streams_;
  const bool encrypted_;
  const std::shared_ptr<Totals> totals_;
  std::vector<std::shared_ptr<Connection>> connections_;  // used by the accepting thread only

  absl::Mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Connection>> by_peer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cistern
