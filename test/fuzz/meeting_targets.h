// What a worker reads from other workers, as functions of bytes that check what comes of it.
#pragma once

#include <vector>

#include "test/fuzz/fuzz_target.h"

namespace cistern {

// hello: the first bytes of a connection to the port where workers meet
// leader: what worker 0 says of the fleet's state
const std::vector<FuzzTarget>& MeetingTargets();

}  // namespace cistern
