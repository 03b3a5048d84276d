// cistern status: reports the state and contents of each server of a fleet.
#pragma once

#include "app/fleet/fleet_status.h"
#include "cli/terminal/command_line.h"

namespace cistern::cli {

// One row per server, and the sums over those that answered.
Report ReportOf(const app::FleetStatus& status);

void AddStatusCommand(Command& root);

}  // namespace cistern::cli
