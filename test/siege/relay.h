// A port of this machine behind which connections go on to a server: as they are, and recorded; or
// through TLS with a certificate, for attackers that speak plain bytes.
#pragma once

#include <atomic>
#include <list>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/tls/authority.h"
#include "common/tls/openssl.h"

namespace cistern {

// Any number of connections, one thread each. What a client does not read or send, the server
// notices: at most 256 KiB wait in each direction. Threads: any.
class Relay {
 public:
  // port: of the server. Passes bytes on as they are, and keeps those of the clients.
  explicit Relay(int port);
  // Passes them on through TLS, and shows `own` to the server, or, if it is empty, no certificate.
  Relay(int port, const KeyedCertificate& own);
  // Ends all connections.
  ~Relay();

  int port() const { return own_port_; }
  std::string address() const;
  // What clients have sent until now, of all connections.
  std::string sent() const;

 private:
  struct Passage {
    std::thread thread;
    std::atomic<bool> ended{false};
  };

  void Run();
  // Connects a client to the server and passes on bytes until either has gone.
  void Serve(int client);
  void Keep(absl::string_view sent);

  const int port_;
  const OpenSslPtr<SSL_CTX> context_;  // null: as they are
  int own_port_ = 0;
  const int listener_;
  std::atomic<bool> stops_{false};
  mutable absl::Mutex mutex_;
  std::string sent_ ABSL_GUARDED_BY(mutex_);
  std::list<Passage> passages_;  // of the thread that accepts
  std::thread thread_;
};

}  // namespace cistern
