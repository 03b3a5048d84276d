// What the servers of a fleet did between two times at which they were asked.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "app/fleet/fleet_status.h"

namespace cistern::app {

// Of one server, a second.
struct ServerRates {
  double pulled_keys = 0, pushed_keys = 0, passes = 0;
};

// A fleet at one moment.
struct FleetMoment {
  FleetStatus status;
  absl::Time time;
};

// Parallel to after.status.servers. Not set: the server did not answer at one of the times, was
// restarted between them, or no time has passed. A pass that a load set back counts as none.
std::vector<std::optional<ServerRates>> RatesBetween(const FleetMoment& before,
                                                     const FleetMoment& after);

// The status as JSON, with `rates` in each server that has them.
nlohmann::ordered_json JsonOf(const FleetMoment& moment,
                              const std::vector<std::optional<ServerRates>>& rates);

}  // namespace cistern::app
