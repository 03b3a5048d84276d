#include "common/http/unix_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace cistern {
namespace {

constexpr mode_t kMode = 0660;

absl::Status Error(const std::string& path, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("socket '", path, "': ", why));
}

int NewSocket() {
  return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

// Removes a socket on which nobody listens.
absl::Status RemoveLeftOver(const std::string& path, const sockaddr_un& address) {
  struct stat file = {};
  if (lstat(path.c_str(), &file) != 0) return absl::OkStatus();
  if (!S_ISSOCK(file.st_mode)) {
    return WithFix(
        absl::FailedPreconditionError(absl::StrCat("'", path, "' exists and is not a socket")),
        "choose another path");
  }
  const int fd = NewSocket();
  const bool answers =
      fd >= 0 && (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 ||
                  errno == EAGAIN);
  if (fd >= 0) close(fd);
  if (answers) {
    return WithFix(absl::FailedPreconditionError(
                       absl::StrCat("another process listens on the socket '", path, "'")),
                   "stop it, or choose another path");
  }
  unlink(path.c_str());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<UnixSocket>> UnixSocket::Listen(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return Error(path,
                 absl::StrCat("the path of a socket has at most ", sizeof(address.sun_path) - 1,
                              " bytes; this one has ", path.size()));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  CISTERN_RETURN_IF_ERROR(RemoveLeftOver(path, address));
  const int fd = NewSocket();
  if (fd < 0) return Error(path, std::strerror(errno));
  std::unique_ptr<UnixSocket> made(new UnixSocket(fd));
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return Error(path, absl::StrCat(std::strerror(errno),
                                    "; name a file in a folder that this process may write"));
  }
  made->path_ = path;
  // Nobody can connect before `listen`.
  if (chmod(path.c_str(), kMode) != 0 || listen(fd, SOMAXCONN) != 0) {
    return Error(path, std::strerror(errno));
  }
  return made;
}

UnixSocket::~UnixSocket() {
  close(fd_);
  if (!path_.empty()) unlink(path_.c_str());
}

}  // namespace cistern
