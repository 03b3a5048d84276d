// Fuzz targets for the bytes that a worker reads from other workers.
#pragma once

#include <vector>

#include "test/fuzz/fuzz_target.h"

namespace cistern {

// hello: the first bytes of a connection to the port where workers meet
// leader: the state of the fleet, as worker 0 sends it
const std::vector<FuzzTarget>& MeetingTargets();

}  // namespace cistern
