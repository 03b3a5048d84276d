// Who makes the call that this thread handles. The planes are plain functions without a place for
// it, and only the log asks.
#pragma once

#include <string>

namespace cistern {

// Lives for as long as a thread handles a call of `peer`, e.g. "ipv4:10.0.0.3:51234".
//
// Threads: each has its own.
class CallPeer {
 public:
  explicit CallPeer(std::string peer);
  ~CallPeer();
  CallPeer(const CallPeer&) = delete;
  CallPeer& operator=(const CallPeer&) = delete;

  // "this process" outside of any.
  static const std::string& Current();
  // Whether the call comes from another process.
  static bool IsRemote();

 private:
  const std::string peer_;
  const CallPeer* const outer_;
};

}  // namespace cistern
