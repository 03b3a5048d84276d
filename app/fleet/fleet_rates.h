// What the servers of a fleet did between two times at which they were asked, once or again and
// again.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
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

struct WatchFleetOptions {
  FleetStatusOptions status;
  double interval = 1;  // seconds between two moments: 0.05 to 3600
  uint64_t count = 0;   // ends after so many calls of `show`; 0: once it is stopped
};

// Asks all servers every `interval` seconds, and calls `show` with each moment but the first and
// the rates since the one before. Returns the number of calls. stop: set from any thread; may be
// null.
//
// kInvalidArgument, with options: an interval out of range. Otherwise errors as AskFleet.
absl::StatusOr<uint64_t> WatchFleet(
    const WatchFleetOptions& options, const std::atomic<bool>* stop,
    const std::function<void(const FleetMoment&, const std::vector<std::optional<ServerRates>>&)>&
        show);

// The status as JSON, with `rates` in each server that has them.
nlohmann::ordered_json JsonOf(const FleetMoment& moment,
                              const std::vector<std::optional<ServerRates>>& rates);

}  // namespace cistern::app
