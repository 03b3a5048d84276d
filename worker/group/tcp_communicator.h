// The communicator of ranks that compute on CPUs: a TCP connection per pair of ranks (peers.h).
#pragma once

#include <memory>

#include "cuda/collective/communicator.h"
#include "worker/group/group_options.h"

namespace cistern::group {

// Waits until every rank of the group is connected. kInvalidArgument for an invalid group; other
// errors as Peers::Connect.
absl::StatusOr<std::unique_ptr<Communicator>> ConnectOverTcp(GroupOptions group);

}  // namespace cistern::group
