// A listening socket with a name in the file system.
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"

namespace cistern {

// Owns the socket and its file, and removes both when it is destroyed. Threads: one at a time.
class UnixSocket {
 public:
  // Listens at `path`, which its owner and its group may open. A socket on which nobody listens is
  // replaced. kFailedPrecondition: another process listens there, or the file is not a socket;
  // kInvalidArgument: the path is too long, or its folder does not exist or cannot be written.
  static absl::StatusOr<std::unique_ptr<UnixSocket>> Listen(const std::string& path);

  ~UnixSocket();
  UnixSocket(const UnixSocket&) = delete;
  UnixSocket& operator=(const UnixSocket&) = delete;

  int fd() const { return fd_; }  // non-blocking

 private:
  explicit UnixSocket(int fd) : fd_(fd) {}

  const int fd_;
  std::string path_;  // of the file; empty: it is not ours
};

}  // namespace cistern
