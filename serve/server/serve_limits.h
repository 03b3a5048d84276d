// What callers can take of a serving process.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace cistern::serve {

struct ServeLimits {
  int max_connections = 1024;                       // of each protocol
  uint64_t max_message_bytes = uint64_t{64} << 20;  // of a request
  uint64_t memory_bytes = uint64_t{512} << 20;      // of all calls and connections of a protocol
  // The silence after which a connection of HTTP is closed. Longer than the minute after which load
  // balancers drop an idle connection, so that none sends a request into one that is being closed.
  int keep_alive_seconds = 75;
  // The age at which a connection is asked to end, give or take a tenth, so that callers that keep
  // theirs find servers that were started later; zero: none is.
  absl::Duration max_connection_age = absl::ZeroDuration();
};

}  // namespace cistern::serve
