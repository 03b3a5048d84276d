#include "common/rpc/descriptor_limit.h"

#include <sys/resource.h>

#include <algorithm>

namespace cistern {
namespace {

constexpr uint64_t kDefaultConnections = 4096;
constexpr uint64_t kMinForFiles = 256;

}  // namespace

uint64_t RaiseDescriptorLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  const rlimit raised = {limit.rlim_max, limit.rlim_max};
  return setrlimit(RLIMIT_NOFILE, &raised) == 0 ? limit.rlim_max : limit.rlim_cur;
}

uint64_t ConnectionRoom(uint64_t descriptors) {
  const uint64_t files = std::max(kMinForFiles, descriptors / 4);
  // With a tiny limit files get fewer: a server without connections would be useless.
  return descriptors > 2 * files ? descriptors - files : descriptors / 2;
}

absl::StatusOr<int> ConnectionLimit(uint64_t descriptors, int wanted) {
  const uint64_t room = ConnectionRoom(descriptors);
  if (wanted == 0) return static_cast<int>(std::min(room, kDefaultConnections));
  if (static_cast<uint64_t>(wanted) <= room) return wanted;
  return WithOptions(absl::InvalidArgumentError(
                         absl::StrCat("max_connections=", wanted, " is above ", room,
                                      ", the number of connections that a limit of ", descriptors,
                                      " open files allows; raise the limit (ulimit -n, "
                                      "LimitNOFILE=) or lower max_connections")),
                     {"cistern-server.max_connections"});
}

}  // namespace cistern
