// The peer whose call the current thread handles. It is thread-local because the methods of the
// planes have no parameter for it and only the log needs it.
#pragma once

#include <string>

namespace cistern {

// Lives while a thread handles a call of `peer`, e.g. "ipv4:10.0.0.3:51234".
//
// Threads: each thread has its own.
class CallPeer {
 public:
  explicit CallPeer(std::string peer);
  ~CallPeer();
  CallPeer(const CallPeer&) = delete;
  CallPeer& operator=(const CallPeer&) = delete;

  // The peer of the current call; "this process" outside of any call.
  static const std::string& Current();
  // Whether the current call comes from another process.
  static bool IsRemote();

 private:
  const std::string peer_;
  const CallPeer* const outer_;
};

}  // namespace cistern
