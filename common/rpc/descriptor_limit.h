// The limit on open files and sockets of this process.
#pragma once

#include <cstdint>

#include "common/base/status.h"

namespace cistern {

// Raises the soft limit (ulimit -n) to the hard limit and returns the limit in effect.
uint64_t RaiseDescriptorLimit();

// The most connections with a limit of `descriptors`: see ConnectionLimit.
uint64_t ConnectionRoom(uint64_t descriptors);

// The number of connections that a server accepts with a limit of `descriptors`: a quarter of them,
// and at least 256, are reserved for files. wanted: --max_connections; 0: as many as possible, up
// to 4096. kInvalidArgument if there is no room for `wanted`.
absl::StatusOr<int> ConnectionLimit(uint64_t descriptors, int wanted);

}  // namespace cistern
