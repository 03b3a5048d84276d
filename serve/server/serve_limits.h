// What callers can take of a serving process.
#pragma once

#include <cstdint>

namespace cistern {

struct ServeLimits {
  int max_connections = 1024;                       // of each protocol
  uint64_t max_message_bytes = uint64_t{64} << 20;  // of a request
  uint64_t memory_bytes = uint64_t{512} << 20;      // of all calls and connections of a protocol
};

}  // namespace cistern
