// A fuzz target for the bytes of a connection, before gRPC sees them (common/rpc/stream_watch.h).
#pragma once

#include <vector>

#include "test/fuzz/fuzz_target.h"

namespace cistern {

// stream_watch: a byte for max_streams, then pieces of a connection: a byte of which bit 0 says
//   that the server sent it, two bytes of length, the bytes. Feeds them to one watch as they come
//   and to another one byte by byte. Aborts if the two disagree, if a refusal is taken back, if the
//   memory that a watch counts exceeds what its frames can hold, or if a second reading of the
//   client's frames finds headers above the limit that were let pass, or none that were refused.
const std::vector<FuzzTarget>& WatchTargets();

}  // namespace cistern
