// Accepts connections on a server's listening sockets and hands them to gRPC.
//
// gRPC's own listener stops permanently once the process runs out of descriptors. This one logs the
// failure, waits a moment and continues. It also limits the number of open connections and the
// memory that they hold (connection_book.h).
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
  // Takes ownership of the socket of a new connection. If it is encrypted, makes its SSL before it
  // returns.
  std::function<void(int fd)> hand_over;
  // Called on the acceptor's thread once the connections hold much less memory than at their peak.
  std::function<void()> give_memory_back = [] {};
};

// Threads: runs a thread of its own. Construction, Stop and destruction: from one other thread.
class ConnectionAcceptor {
 public:
  // book: outlives the acceptor; the acceptor's thread is its accepting thread.
  ConnectionAcceptor(ListeningSockets sockets, AcceptorOptions options, ConnectionBook* book);
  ~ConnectionAcceptor() { Stop(); }

  int port() const { return sockets_.port(); }
  // Closes the listening sockets and ends the thread. Open connections stay open. May be called
  // more than once.
  void Stop();

 private:
  void Work();
  // Waits for connections until the next sweep, due after `most`. False if Stop was called.
  bool Wait(absl::Duration most, bool listen);
  // Accepts some of the connections pending at `listener`; false: the process or the machine has
  // run out of descriptors or memory.
  bool AcceptSome(int listener);
  void Admit(int fd);
  void Sweep();
  void ReleaseMemory(uint64_t held_bytes, absl::Time now);

  ListeningSockets sockets_;
  const AcceptorOptions options_;
  ConnectionBook* const book_;
  const int wake_fd_;  // readable once Stop is called

  // Used by the acceptor's thread only:
  LogLimit refused_{absl::Seconds(10)}, failed_{absl::Seconds(10)}, ended_{absl::Seconds(10)},
      excessive_{absl::Seconds(10)}, without_call_{absl::Minutes(10)};
  absl::Time last_sweep_ = absl::InfinitePast();
  int failure_ = 0;  // errno of the last accept that failed
  ConnectionBook::Swept last_ended_;
  std::string last_excessive_, last_without_call_;
  uint64_t peak_bytes_ = 0;                        // most bytes held since the last give-back
  absl::Time low_since_ = absl::InfiniteFuture();  // when the held bytes fell far below the peak

  std::unique_ptr<ThreadPool> thread_;
};

// gRPC's name for the peer of a connected socket, e.g. "ipv4:10.0.0.3:51234"; empty if the socket
// is no longer connected.
std::string PeerOfSocket(int fd);

}  // namespace cistern
