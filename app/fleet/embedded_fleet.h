// Servers inside this process, which jobs use unless they name a fleet.
#pragma once

#include <cstdint>
#include <memory>

#include "app/fleet/fleet_session.h"
#include "common/base/status.h"
#include "worker/client/parameter_client.h"

namespace cistern::app {

// Starts `server_num` servers without sockets, and a client that calls their planes directly.
//
// state_root: the servers keep their commits in its folder state/, and recover the newest one
// there; empty: they write no files. memory_limit_bytes: of each server. kInvalidArgument unless 1
// <= server_num <= 64 (the number of shards).
absl::StatusOr<std::unique_ptr<FleetSession>> StartEmbeddedFleet(uint64_t server_num,
                                                                 const ClientOptions& options,
                                                                 const std::string& state_root,
                                                                 uint64_t memory_limit_bytes);

}  // namespace cistern::app
