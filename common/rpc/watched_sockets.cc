#include "common/rpc/watched_sockets.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "common/rpc/next_function.h"

namespace cistern {
namespace {

uint64_t InodeOf(int fd) {
  struct stat status = {};
  return fstat(fd, &status) == 0 ? status.st_ino : 0;
}

// The watched sockets of the process, in groups with a lock each. It is the only object of the
// process without an owner: recvmsg and sendmsg get a socket and nothing else.
class WatchTable {
 public:
  struct Entry {
    std::shared_ptr<StreamWatch> watch;
    uint64_t inode = 0;
  };

  // Never destroyed: gRPC's threads may outlive main.
  static WatchTable& OfProcess() {
    static WatchTable* const table = new WatchTable;
    return *table;
  }

  void Set(int fd, Entry entry) {
    Group& group = GroupOf(fd);
    absl::MutexLock lock(&group.mutex);
    group.entries[fd] = std::move(entry);
  }
  void Remove(int fd, const StreamWatch* watch) {
    Group& group = GroupOf(fd);
    absl::MutexLock lock(&group.mutex);
    const auto found = group.entries.find(fd);
    if (found != group.entries.end() && found->second.watch.get() == watch) {
      group.entries.erase(found);
    }
  }
  Entry Find(int fd) {
    Group& group = GroupOf(fd);
    absl::ReaderMutexLock lock(&group.mutex);
    const auto found = group.entries.find(fd);
    return found == group.entries.end() ? Entry() : found->second;
  }

 private:
  struct Group {
    absl::Mutex mutex;
    absl::flat_hash_map<int, Entry> entries ABSL_GUARDED_BY(mutex);
  };
  Group& GroupOf(int fd) { return groups_[static_cast<size_t>(fd) % groups_.size()]; }

  std::array<Group, 64> groups_;
};

// Calls `visit` with each piece of the first `size` bytes of a message, until it returns false.
template <class Visit>
void ForPieces(const msghdr& message, size_t size, const Visit& visit) {
  for (size_t i = 0; i < message.msg_iovlen && size > 0; ++i) {
    const size_t length = std::min<size_t>(message.msg_iov[i].iov_len, size);
    if (!visit(absl::string_view(static_cast<const char*>(message.msg_iov[i].iov_base), length))) {
      return;
    }
    size -= length;
  }
}

// Whether the bytes that were read may be used.
bool MayBeRead(int fd, const msghdr& message, size_t size) {
  const WatchTable::Entry entry = WatchTable::OfProcess().Find(fd);
  if (entry.watch == nullptr) return true;
  bool may = true;
  ForPieces(message, size, [&](absl::string_view bytes) {
    may = entry.watch->FromClient(bytes).ok();
    return may;
  });
  if (may || InodeOf(fd) == entry.inode) return may;
  // The watched socket is closed, and another one has its number.
  UnwatchSocket(fd, entry.watch.get());
  return true;
}

void Written(int fd, const msghdr& message, size_t size) {
  const WatchTable::Entry entry = WatchTable::OfProcess().Find(fd);
  if (entry.watch == nullptr) return;
  ForPieces(message, size, [&](absl::string_view bytes) {
    entry.watch->FromServer(bytes);
    return true;
  });
}

}  // namespace

void WatchSocket(int fd, std::shared_ptr<StreamWatch> watch) {
  if (fd < 0) return;
  WatchTable::OfProcess().Set(fd, {std::move(watch), InodeOf(fd)});
}

void UnwatchSocket(int fd, const StreamWatch* watch) {
  if (fd >= 0) WatchTable::OfProcess().Remove(fd, watch);
}

}  // namespace cistern

// Default visibility: libgrpc.so must find these two before those of the C library.
extern "C" {
#pragma GCC visibility push(default)

ssize_t recvmsg(int fd, msghdr* message, int flags) {
  static const auto read = cistern::NextFunction<ssize_t(int, msghdr*, int)>("recvmsg");
  const ssize_t size = read(fd, message, flags);
  if (size <= 0 || (flags & (MSG_PEEK | MSG_ERRQUEUE)) != 0) return size;
  if (cistern::MayBeRead(fd, *message, static_cast<size_t>(size))) return size;
  errno = ECONNRESET;
  return -1;
}

ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  static const auto write = cistern::NextFunction<ssize_t(int, const msghdr*, int)>("sendmsg");
  const ssize_t size = write(fd, message, flags);
  if (size > 0) cistern::Written(fd, *message, static_cast<size_t>(size));
  return size;
}

#pragma GCC visibility pop
}
