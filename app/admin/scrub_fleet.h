// Makes running servers compare their rows with the digests that they recorded.
#pragma once

#include <string>
#include <vector>

#include "app/fleet/fleet_session.h"
#include "app/job_calls.h"
#include "common/base/status.h"
#include "proto/control_plane.pb.h"

namespace cistern::app {

struct ScrubbedServer {
  std::string server;
  absl::Status state;  // kDataLoss: a fault; another error: it was not checked
  v1::ScrubReply checked;
};

struct ScrubResult {
  std::vector<ScrubbedServer> servers;  // by rank

  // OK if all are. kDataLoss of kind kBadCheckpoint, with a fix: a server found a fault.
  absl::Status outcome() const;
};

// Asks every server, even after one has found a fault. files: they also read every file that a
// restart would recover from. Faults are a result.
absl::StatusOr<ScrubResult> ScrubServers(ParameterClient& client, bool files,
                                         const JobCalls& calls);

}  // namespace cistern::app
