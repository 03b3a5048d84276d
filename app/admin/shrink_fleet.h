// Decays the statistics of a fleet's ctr tables and removes rows that are not worth keeping.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/fleet/fleet_session.h"
#include "app/fleet/precondition.h"
#include "app/job_calls.h"
#include "common/base/status.h"

namespace cistern::app {

struct ShrinkFleetOptions {
  FleetOptions fleet;
  bool dry_run = false;  // only counts
  uint64_t day = 0;      // today's day number, for tables whose rows record days
  Precondition expected;
};

struct ShrunkServer {
  std::string server;
  uint64_t rows = 0, removed = 0;  // before; of these
};

// All servers shrink their shards in parallel; then the fleet commits. A dry run changes nothing
// and claims no term, so training can continue meanwhile. By rank. kFailedPrecondition: an
// expectation does not hold.
absl::StatusOr<std::vector<ShrunkServer>> ShrinkFleet(const ShrinkFleetOptions& options,
                                                      const JobCalls& calls);

}  // namespace cistern::app
