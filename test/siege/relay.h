// A relay between a client and a server of this machine, which records what the client sends.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace cistern {

// Passes on one connection at a time. Threads: any.
class Relay {
 public:
  // port: of the server.
  explicit Relay(int port);
  // Ends the connection.
  ~Relay();

  std::string address() const;
  // What clients have sent until now, of all connections.
  std::string sent() const;

 private:
  void Run();
  // Passes bytes on until one side closes.
  void Pass(int client, int server);

  const int port_;
  int listener_ = -1, own_port_ = 0;
  std::atomic<bool> stops_{false};
  mutable absl::Mutex mutex_;
  std::string sent_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace cistern
