// Takes connections off a server's sockets and hands them to the server.
//
// gRPC's own listener gives up for good when the process is out of descriptors once. This one logs,
// waits a moment and goes on; it takes no more than a number of connections at a time, and bounds
// the memory that they hold (connection_book.h).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/thread_pool.h"
#include "common/rpc/connection_book.h"
#include "common/rpc/listening_socket.h"
#include "common/rpc/log_limit.h"

namespace cistern {

struct AcceptorOptions {
  int max_connections = 1024;
  // Takes over the socket of a new connection.
  std::function<void(int fd)> hand_over;
  // Called on the acceptor's thread once the connections hold much less memory than they did.
  std::function<void()> give_memory_back = [] {};
};

// Threads: it has one of its own; Start, Stop and destruction from one other.
class ConnectionAcceptor {
 public:
  // book: outlives the acceptor, whose thread is the one that accepts.
  ConnectionAcceptor(ListeningSockets sockets, AcceptorOptions options, ConnectionBook* book);
  ~ConnectionAcceptor() { Stop(); }

  int port() const { return sockets_.port(); }
  // Closes the sockets and ends the thread. Connections live on. May be called again.
  void Stop();

 private:
  void Work();
  // Waits for connections, at most until the next sweep; false: Stop was called.
  bool Wait(absl::Duration most, bool listen);
  // Takes some of what waits at `listener`; false: the process or the machine is out of something.
  bool AcceptSome(int listener);
  void Admit(int fd);
  void Sweep();
  void GiveMemoryBack(uint64_t held_bytes, absl::Time now);

  ListeningSockets sockets_;
  const AcceptorOptions options_;
  ConnectionBook* const book_;
  const int wake_fd_;  // readable once Stop is called

  // Of the acceptor's thread:
  LogLimit refused_{absl::Seconds(10)}, failed_{absl::Seconds(10)}, ended_{absl::Seconds(10)};
  absl::Time last_sweep_ = absl::InfinitePast();
  int failure_ = 0;  // errno of the last accept that failed
  ConnectionBook::Swept last_ended_;
  uint64_t peak_bytes_ = 0;                        // held since memory was last given back
  absl::Time low_since_ = absl::InfiniteFuture();  // since when much less is held

  std::unique_ptr<ThreadPool> thread_;
};

// The name that gRPC gives to the peer of a connected socket, e.g. "ipv4:10.0.0.3:51234"; empty
// if it has none any more.
std::string PeerOfSocket(int fd);

}  // namespace cistern
