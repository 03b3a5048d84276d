// Servers inside this process, which jobs use unless they name a fleet.
#pragma once

#include <cstdint>
#include <memory>

#include "app/fleet/fleet_session.h"
#include "common/base/status.h"
#include "worker/client/parameter_client.h"

namespace cistern::app {

// Starts fleet.embedded_servers servers without sockets, and a client that calls their planes
// directly.
//
// state_root: the servers keep their commits in its folder state/, and recover the newest one
// there; empty: they write no files. kInvalidArgument unless there are 1 to 64 servers (the number
// of shards).
absl::StatusOr<std::unique_ptr<FleetSession>> StartEmbeddedFleet(const FleetOptions& fleet,
                                                                 const ClientOptions& options,
                                                                 const std::string& state_root);

}  // namespace cistern::app
