// How many files and sockets this process may have open.
#pragma once

#include <cstdint>

#include "common/base/status.h"

namespace cistern {

// Raises the limit (ulimit -n) as far as an ordinary process may, and returns it.
uint64_t RaiseDescriptorLimit();

// How many connections a server takes where `descriptors` may be open: at least 256, or a quarter
// of them, stay for files. wanted: --max_connections; 0 chooses, at most 4096.
// kInvalidArgument if there is no room for `wanted`.
absl::StatusOr<int> ConnectionLimit(uint64_t descriptors, int wanted);

}  // namespace cistern
