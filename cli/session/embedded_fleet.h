// Servers inside this process: what `cistern train` uses when no fleet is named.
#pragma once

#include <cstdint>
#include <memory>

#include "cli/session/fleet_session.h"
#include "common/base/status.h"
#include "worker/client/parameter_client.h"

namespace cistern {

// Starts `server_num` servers without sockets, and a client on their planes. state_root: they keep
// their commits in its folder state/, and begin with those that are there; empty: no files.
// kInvalidArgument unless 1 <= server_num <= 64 (the shards).
absl::StatusOr<std::unique_ptr<FleetSession>> StartEmbeddedFleet(uint64_t server_num,
                                                                 const ClientOptions& options,
                                                                 const std::string& state_root);

}  // namespace cistern
