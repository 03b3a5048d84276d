// Discovery of a fleet: sends Hello to every server and checks that their replies agree.
#pragma once

#include <vector>

#include "common/base/status.h"
#include "common/value/shard_map.h"
#include "common/wire/planes.h"
#include "worker/client/fleet_reader.h"

namespace cistern {

// A fleet whose servers agree.
struct FleetView {
  std::vector<ServerLink> servers;  // by rank
  ShardMap map;
  v1::Schema schema;  // empty: no tables yet
  uint64_t term = 0;  // the highest term that any server has seen
  PassId committed = 0;
  bool durable = false;        // commits survive the servers
  bool local_state = false;    // each server keeps them in a folder of its own
  bool rows_in_files = false;  // a server has a memory limit
  bool behind = false;         // local_state: a server has missed the newest commit
  v1::StepClock clock;         // of the committed pass
  v1::PassDays days;           // up to the committed pass
  std::string writer_at_work;  // an active writer other than the caller; empty if none
};

// Sends Hello to all `servers` in parallel and retries until retry_limit. kUnavailable names every
// server that does not answer; kFailedPrecondition names the mismatch and its fix.
// secret: the secret of the caller's own claim, or 0.
absl::StatusOr<FleetView> ReadFleetView(const std::vector<ServerLink>& servers,
                                        const ClientOptions& options, uint64_t secret = 0);

}  // namespace cistern
