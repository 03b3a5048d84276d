// The communicator of processes that compute on CPUs: TCP between each two of them (peers.h).
#pragma once

#include <memory>

#include "cuda/collective/communicator.h"
#include "worker/group/group_options.h"

namespace cistern {

// Waits until every process of the group is connected. kInvalidArgument for a group that cannot be;
// other errors as Peers::Connect.
absl::StatusOr<std::unique_ptr<Communicator>> ConnectOverTcp(GroupOptions group);

}  // namespace cistern
