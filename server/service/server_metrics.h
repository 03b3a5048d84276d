// The figures of a server as a page for Prometheus (docs/monitoring.md lists them).
#pragma once

#include <string>

#include "server/service/node_state.h"

namespace cistern::server {

// Reads counters and, unless the tables are being replaced or claimed at this moment, what each
// table holds. Waits for no long job: of the locks that a commit holds while it writes files it
// takes none, or gives up.
//
// Threads: any thread.
std::string ServerMetricsText(NodeState& state);

}  // namespace cistern::server
